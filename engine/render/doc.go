// Package render says what an operator package makes of one custom resource, without a
// cluster: the objects in the order in which they would be applied, and of each component
// what the status of the resource would say.
//
// It decides nothing itself: it fills a cluster in memory with what is given, and asks the
// reconcile what it would do there.
//
//	out, err := render.Render(ctx, p, render.Input{CR: cr, Manifests: live})
//	for _, o := range out.Objects() { ... }      // dependencies first
//	for _, c := range out.Components { ... }     // c.State, c.Reason, c.Message
//	tree, err := out.Tree()
//
// # Live objects
//
// What a cluster holds may be given in two forms: by component and object name, as
// the package sees it, or as plain manifests. Those that were read from a cluster, and so
// have a resource version, are taken as they are. Others have been written by hand, to see
// what follows from a state: where the package renders an object of that identity, or it is
// given by name, it is taken as what the operator has applied, with the given fields over
// that. One object may complete another, so deciding and placing alternate until nothing
// new is placed:
//
//	decide --> objects --> place what was given --> live --+
//	   ^                                                   |
//	   +---------------------------------------------------+
package render
