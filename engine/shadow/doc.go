// Package shadow compares what a package would make of live resources with what another operator has made of
// them, and writes nothing: what a team does before it hands a kind over to Operetta.
//
//	s := shadow.New(shadow.Options{Cluster: reads, Metadata: client, ...})
//	s.Serve(version)        a package, or its next version
//	s.Run(ctx)              follows the resources until the context ends, or all are the same
//
//	                 ┌─ tracker: watches of metadata, and lists of what nobody watches
//	  event ─ queue ─┤
//	                 └─ compare: one resource, by the preview of a reconcile in memory
//
// What is wanted is what reconcile.Preview says, as in operetta render: there is no second reconcile. It runs on a
// cluster in memory, which copies what it reads. The copies of the objects that the package renders carry the marks
// of the engine, as if it owned them: whose they are is not the question, but whether they are as the package wants
// them. The objects themselves are never marked. What is compared is what the package renders, after an apply in memory.
//
// It is no plan: a plan lets the operator act in memory until everything is done, and shows the way there. A
// shadow compares with what is live at this moment, and goes on doing so.
package shadow
