// Package render shows what the next reconcile would decide about a custom resource, without a
// cluster: the objects in the order in which they would be applied, and the state of each
// component in the words of the status.
//
// It decides nothing itself: it fills a cluster in memory with the given objects, and calls the
// preview of the reconcile there.
//
//	out, err := render.Render(ctx, p, render.Input{CR: cr, Manifests: live})
//	for _, o := range out.Objects() { ... }      // dependencies first
//	for _, c := range out.Components { ... }     // c.State, c.Reason, c.Message
//	tree, err := out.Tree()
//
// # Live objects
//
// Live objects may be given in two forms: by component and object name, as the package sees
// them, or as plain manifests. Manifests that were read from a cluster, and so have a resource
// version, are used as they are. Others were written by hand, to see what follows from a state:
// they stand for the rendered object of that name or identity as the operator has applied it, with
// the given fields over that. One object may complete another, so deciding and placing alternate
// until nothing new is placed:
//
//	decide --> objects --> place the given objects --> live --+
//	   ^                                                      |
//	   +------------------------------------------------------+
package render
