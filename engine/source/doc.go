// Package source says where operator packages come from: a folder on disk, or
// any fs.FS such as one that is embedded in a binary.
//
// A Snapshot is one version of a package: the CUE files that it needs, read
// once and never changed, with a digest over them. It is not evaluated here
// (package program does that), and which version is good is not known here (the
// caller that swaps packages knows). Kept keeps that one on disk.
//
// The contract and the Kubernetes types that packages import are not read from
// the package's module: they come with the engine, in the light form that a
// run-time evaluation can afford.
//
//	dirs, err := source.Expand([]string{"./cue/..."})
//	snapshot, err := source.Folder(dirs[0])
//	err = source.Watch(ctx, poll)
package source
