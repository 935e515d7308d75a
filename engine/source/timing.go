package source

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// Changes of files.
const (
	// mtimeGranularity is the coarsest resolution of modification times. Two changes within it
	// can have the same time, so a file that was changed that recently is read again.
	mtimeGranularity = 2 * time.Second
	// rereadInterval is how often files are read although sizes and times are the same, because
	// modification times can be set.
	rereadInterval = 10 * time.Second
	// pollInterval is how often the sizes and times of a watched package's files are compared. Unlike
	// notifications, that works on every file system, however an editor or a mounted ConfigMap replaces
	// files, and ten files cost less than a hundred microseconds.
	pollInterval = 200 * time.Millisecond
	// retryInterval is how often a version is passed on again that something else than its content keeps from being served: an API
	// server that refuses its definition, a resource that would lose fields, or another package of its kind.
	retryInterval = 30 * time.Second
	// refusedInterval is how often that is so if only a permission is missing.
	refusedInterval = 2 * time.Second
)
