// Package program is a loaded operator package: CUE in, plain Go data out.
//
// It compiles a source.Snapshot once (Load) and then evaluates it purely, as
// often as needed and concurrently (Program.Evaluate): no clock, no I/O, no
// randomness, and the same Session gives the same Rollout. It does not talk to a
// cluster, decide what to write, or judge whether a package is sensible (package
// vet does).
//
// # Terms
//
//	Session    the input of one evaluation: the custom resource, live objects, inputs
//	Rollout    its result: components in the author's order
//	Component  objects, edges to other components, gates and predicates
//	Predicate  one named condition, with four verdicts and never two:
//
//	           true      it holds
//	           false     it does not
//	           unknown   it refers to a field that does not exist yet
//	           broken    it can never be decided: a fault of the package
//
//	Fault      one mistake, with file:line, path and a hint
//	held       a component whose existence or content is undecided, because a
//	           comprehension around it is
//
//	Snapshot --Load--> Program --Evaluate(Session)--> Rollout
//
// A Program is made of parts, which are immutable, too, and know only what they need:
//
//	Static       the package without a custom resource: its text, schemas and contract
//	Views        what the package sees of sessions, and how much of them there may be
//	Secrets      what of the package and of sessions is secret
//	Config       the configuration that the package takes
//	Conversions  how the versions of its kind become each other
//	Recompiled   the package compiled once more, for what may not be built where it serves
//
// # How
//
// The data of a session enters by filling Go values into the root of the compiled
// package. It is never compiled into the package's CUE context, which would keep it
// for good, and never filled in further down, where evaluations would share trees.
//
// An evaluation is cheap because of three things: only the fields of live objects that
// the package refers to are filled in; imported packages are pruned to what can be
// reached; and everything is filled in at once.
//
// Dependencies are read from the text, once, by package syntax: an expression that waits
// has no value, and a value does not know what it was made from.
package program
