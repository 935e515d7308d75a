// Package source reads the files of operator packages from a folder on disk, or from any
// fs.FS such as one that is embedded in a binary.
//
// A Snapshot is one version of a package: the CUE files that it needs, read once and never
// changed, with a digest over them. This package does not evaluate it (package program
// does), and does not know whether the version is good (the caller that swaps packages
// does). LastGood stores the last good version on disk.
//
// The contract and the Kubernetes types that packages import are not read from the
// package's module. They are part of the engine, in the light form that is cheap enough to
// evaluate at run time.
//
//	dirs, err := source.Expand([]string{"./cue/..."})
//	snapshot, err := source.Loader{}.Folder(dirs[0])
//	source.Watch(ctx, last, outcome, read, changed)    calls changed with each new version, until the context ends
package source
