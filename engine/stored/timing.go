package stored

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// checkLimit is how long the resources of a definition are looked at: 10,000 take seconds.
const checkLimit = 40 * time.Second
