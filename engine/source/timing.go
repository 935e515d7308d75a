package source

import "time"

// All timing of the package is here; docs/timing.md has a table of it.

// Changes of files.
const (
	// settled is how old a change has to be for its time to tell it from the next one: file
	// systems count in steps, and a second change within one step looks like the first.
	settled = 2 * time.Second
	// readAnyway is how often files are read whose sizes and times are the same: times can be set.
	readAnyway = 10 * time.Second
	// watchEvery is how often a watched package is read. Reading a package of ten
	// files costs well under a millisecond, works on every file system, and does not
	// care how an editor or a mounted ConfigMap replaces files.
	watchEvery = 200 * time.Millisecond
)
