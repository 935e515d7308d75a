package crd

import (
	"iter"

	"cuelang.org/go/cue"
)

// maxChain bounds how many references and operators are followed at one field.
const maxChain = 100

// operands returns v and the values that it is composed of: operands of & and |, arguments of close,
// and targets of the references for which follow is true; nil follows all. The second value is true
// for the target of a reference; the nearest target comes first.
//
// Each target occurs once: definitions that double each other
// (#A: #B & #B, #B: #C & #C, …) would otherwise take exponential time.
func operands(v cue.Value, follow func(reference cue.Value) bool) iter.Seq2[cue.Value, bool] {
	return func(yield func(v cue.Value, referred bool) bool) {
		w := operandWalk{follow: follow, yield: yield, seen: map[cue.Value]bool{}}
		_ = yield(v, false) && w.walk(v, 0)
	}
}

type operandWalk struct {
	follow func(reference cue.Value) bool
	yield  func(v cue.Value, referred bool) bool
	seen   map[cue.Value]bool
}

// walk yields the values that v is composed of, and reports whether to continue.
func (w *operandWalk) walk(v cue.Value, depth int) bool {
	if depth > maxChain {
		return true
	}
	op, args := v.Expr()
	switch op {
	case cue.SelectorOp, cue.IndexOp:
		if w.follow != nil && !w.follow(v) {
			return true
		}
		to := cue.Dereference(v)
		if to == v || !to.Exists() || w.seen[to] {
			return true
		}
		w.seen[to] = true
		return w.yield(to, true) && w.walk(to, depth+1)
	case cue.CallOp:
		if callName(args[0]) != "close" {
			return true // the result of a function is not composed of its arguments
		}
	case cue.AndOp, cue.OrOp:
	case cue.NoOp:
		// A disjunction whose default is an instance of the only other arm is that arm.
		if len(args) != 1 || args[0] == v {
			return true
		}
	default:
		return true
	}
	for _, a := range args {
		if !w.yield(a, false) || !w.walk(a, depth+1) {
			return false
		}
	}
	return true
}
