package history

import "time"

// All timing of the package is here; docs/timing.md has a table of it.
const (
	// timerTolerance is how much earlier than due a timer may fire: the queue has a clock of its own.
	timerTolerance = 20 * time.Millisecond
)
