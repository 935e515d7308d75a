package shadow

import "time"

// All timing of the package is in this file; docs/timing.md has a table of it.
const (
	// debounce is how long a resource waits for further events before it is compared: an operator writes several
	// objects at once.
	debounce = 300 * time.Millisecond
	// compareInterval is how often a resource is compared at most, however often its objects change.
	compareInterval = 2 * time.Second
	// retryInterval is after how long a resource that could not be compared is compared again.
	retryInterval = 10 * time.Second
	// watchRetry is after how long a kind that may not be watched, or is not served, is tried again.
	watchRetry = 10 * time.Second
	// pollInterval is how often resources are compared again that have read objects of a kind that may not be watched.
	pollInterval = time.Minute
	// scanInterval is how often the kinds that nobody watches are listed for objects that belong to resources.
	scanInterval = 5 * time.Minute
	// summaryInterval is how often a summary comes at most while resources are still being compared.
	summaryInterval = 5 * time.Second
)
