// Package plan says what a change of a package, or of custom resources, does to every live resource: which
// objects are created, updated field by field, recreated and deleted, and which resources become invalid.
//
//	p, err := plan.Make(ctx, plan.Options{Cluster: snapshot, New: version, Old: &before})
//	p.Text(palette)   as a person reads it
//	json.Marshal(p)   for a program
//
// Each resource is reconciled by the operator's own code on a cluster in memory of its own, which copies
// the live objects when they are read, until nothing changes any more. What the operator writes becomes
// healthy there, as in a dry run; see dryrun.World.ReadThrough. So a plan reads a cluster and never writes one.
//
// A Snapshot is the cluster as it is. There are two: Live reads an API server, and Dump is what a Recorder
// has read from another snapshot, so that plans can be made elsewhere. A dump holds no value of a Secret.
package plan
