package registry

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

const (
	// fetchTimeout is how long it takes at most to fetch one module.
	fetchTimeout = 30 * time.Second
	// pushTimeout is how long it takes at most to push one module.
	pushTimeout = 2 * time.Minute
	// failureAgain is when a module is fetched again that could not be fetched. It doubles with each time.
	failureAgain = time.Second
	// maxFailureDelay is the longest such delay.
	maxFailureDelay = 5 * time.Minute
)
