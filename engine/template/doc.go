// Package template evaluates what a package says without CUE, by trees of plain nodes.
//
// CUE turns a package into a tree once for each shape of its data, with a reference to the data where
// a scalar of it shows. A tree has no loop over data and no recursion, so that its evaluation takes a
// time that its size bounds, whatever the data is; and it is plain data itself, so that it can be made in
// one process and evaluated in another.
//
//	Shape(data) --key--> Template --Eval(data)--> values
//
// The package knows nothing of custom resources, and nothing of CUE but what its operators and its
// standard library return: an operation is right if it returns the same as CUE's, or ErrFallback. It
// returns that for everything that is rare (numbers beyond 64 bits, floats, kinds that an operator does
// not take), and whoever asked evaluates with CUE then. So a node is never wrong, only sometimes
// without an answer.
package template
