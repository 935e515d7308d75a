// Package capsule records decisions of an operator and makes them again elsewhere: a capsule has what one reconcile of
// one resource has read, which version of the package it ran, and what came of it.
//
//	r, err := capsule.NewRecorder(options)
//	reconciler.Cluster = r.Cluster(reconciler.Cluster)
//	ctx, reading := r.Begin(ctx)
//	reconciler.Reconcile(ctx, key, pkg)
//	r.End(reading, step)           in the background: a file in a folder
//
//	c, err := capsule.Read(file)
//	decision, missing, err := c.Decide(ctx, version)
//
// A decision is that of one reconcile by the operator's own code in memory, at the time of the capsule, of a process that
// has just started. It is made once when the capsule is written, of what the capsule holds: values of Secrets are
// replaced by others first. So the same capsule and the same version of the package give the same decision in
// every byte, and no value of a Secret is in a capsule, except where a package has made a name or a label of it. What the operator did itself is recorded beside it, as verbs
// and names: a process that runs longer also remembers what it has tried.
//
// This package does not say what a decision of many resources would be, which is package plan.
package capsule
