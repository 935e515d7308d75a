package watch

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

const (
	// Resync is how often each custom resource is reconciled without an event, to notice
	// changes without an event. It costs no request.
	Resync = time.Hour
	// SyncTimeout is how long readers of a kind wait for its watch to sync. A list that is not
	// allowed is retried forever, and must not hold workers.
	SyncTimeout = 20 * time.Second
	// syncPoll is how often those readers check whether the watch has failed.
	syncPoll = 20 * time.Millisecond
	// patchesInterval is how often at most the API server is asked again whether it serves Patches; at first it
	// is patchesRetry, and doubles.
	patchesInterval = 30 * time.Second
	// patchesRetry is how soon it is asked again at first, and after an error.
	patchesRetry = time.Second
	// refusedInterval is how often a list or watch that is not allowed is tried again. The library's
	// delay grows to a minute, long after the permission has been granted.
	refusedInterval = 4 * time.Second
	// unwatchedInterval is how often a resource is reconciled that has an object of a kind beyond
	// the limit of watches, as no event tells of such an object.
	unwatchedInterval = time.Minute
)
