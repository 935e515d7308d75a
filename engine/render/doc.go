// Package render says what an operator package makes of one custom resource,
// without a cluster: the objects in the order in which they would be applied, and
// for each component whether it is rendered, left out, or waiting, and why.
//
// It is a pure function over package program, which evaluates, and package graph,
// which orders. It reads no file and prints nothing (the command does), it judges
// no health beyond the author's own predicates (packages verify and status do), and
// it decides nothing about what to write (package ownership does).
//
//	out, err := render.Render(p, render.Input{CR: cr, Manifests: live})
//	for _, o := range out.Objects() { ... }      // dependencies first
//	for _, c := range out.Components { ... }     // c.State, c.Because, c.Waits
//	tree, err := out.Tree()
//
// # Live objects
//
// What a cluster holds may be given in two forms: by component and object name, as
// the package sees it, or as plain manifests, which are matched to the rendered
// objects by group, kind, namespace and name. One match may complete another
// object, so evaluating and matching alternate until nothing new matches:
//
//	evaluate --> objects --> match manifests --> live --+
//	   ^                                                |
//	   +------------------------------------------------+
package render
