// Package program is a loaded operator package: CUE in, plain Go data out.
//
// It compiles a source.Snapshot once (Load) and then evaluates it purely, as
// often as needed and concurrently (Program.Evaluate): no clock, no I/O, no
// randomness, and the same Session gives the same Rollout. It does not talk to a
// cluster, decide what to write, or judge whether a package is sensible (package
// check does).
//
// # Terms
//
//	Session    what one reconcile knows: the custom resource and the live objects
//	Rollout    what the package says to that: components in the author's order
//	Component  objects, edges to other components, gates and predicates
//	Predicate  one named condition, with four verdicts and never two:
//
//	           true      it holds
//	           false     it does not
//	           unknown   it refers to something that is not there yet
//	           broken    it can never be decided: a fault of the package
//
//	Fault      something wrong, with file:line, path and a hint
//	held       of a component: whether it exists, or what is in it, is not decided,
//	           because a comprehension around it is not
//
//	Snapshot --Load--> Program --Evaluate(Session)--> Rollout
//
// # How
//
// The data of a session enters by filling Go values into the root of the compiled
// package. It is never compiled into the package's CUE context, which would keep it
// for good, and never filled in further down, where evaluations would share trees.
//
// What keeps an evaluation cheap: only what the package refers to of live objects is
// filled in; imported packages are pruned to what can be reached; and everything is
// filled in at once.
//
// What depends on what is read from the text (index, reference), once: an expression
// that waits has no value, and a value does not know what it was made from.
package program
