// Package check runs an operator package on a cluster in memory for many custom resources, and reports what
// goes wrong for any of them. It is a check, no proof: it tries the branches of the schema, not every value.
//
//	schema of the CRD --> branches --> cases --> a cluster in memory for each --> counterexamples, made small
//
//	branch   a field of the spec with values that may matter: an enumeration, a boolean, what may be left
//	         out, the bounds of a number, and lists and maps without, with one and with two elements
//	         The objects of inputs have branches, too: whether they are there, and what the package reads of them.
//	case     one choice for each branch: all combinations if they are few, and otherwise every pair of choices
//	counterexample  a fault with the smallest resource, and the smallest objects of inputs, that show it
//
// A case begins with nothing but the resource. The simulated controllers of package dryrun make its objects
// healthy, until nothing changes any more. Each state on the way has to render without a fault, as package
// render sees faults, and the last one has to be ready. Then the spec changes to that of the simplest case and
// back, after which there have to be the same objects again.
//
//	report, err := check.Run(ctx, p, check.Options{})
//	for _, f := range report.Counterexamples { ... } // f.Fault, f.Resource
//
// A default in the place of an expression that always fails is a fault, too: the package is compiled once more
// without the default, and evaluated in the last state of each case, also with other values of what the expression
// refers to.
//
// It errs on the side of silence. What depends on a value that was made up, such as a text that the API server
// refuses, or on what only a controller unknown here would write, is counted and not reported. Nor is a fault about
// a value of an input that nothing in the package names (a sample), if another value does not show it.
// It evaluates in this process, so that a caller who does not trust the package runs it in a worker.
package check
