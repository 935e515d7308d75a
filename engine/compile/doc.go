// Package compile turns a package and one session into a template: plain nodes that give the
// rollout of every session of the same shape, without CUE.
//
//	Compiler.Compile(session, pins) --> Result{Rollout, Template, Pins}
//	Template.Eval(view)             --> Rollout
//
// CUE evaluates the session as it is, and once more with a type in the place of each scalar that
// is not pinned. What is concrete there without resting on such a hole is a constant, and the rest is
// translated from the expressions that CUE kept. Each constraint on a hole becomes a guard, so that
// a template has no answer where CUE would have found something wrong.
//
// A template is only returned if it gives what CUE gives, for the session itself and for a session with
// other values. Otherwise holes are pinned: their values become part of the shape, and the compiler
// tries again.
package compile
