package crd

import "cuelang.org/go/cue"

// visitOperands visits v and the values that it is composed of: operands of & and |, arguments of
// close, and targets of the references for which follow is true; nil follows all. referred is true
// for targets of references; the nearest is visited first.
//
// Each target is visited once: definitions that double each other
// (#A: #B & #B, #B: #C & #C, …) would otherwise take exponential time.
func visitOperands(v cue.Value, follow func(reference cue.Value) bool, visit func(v cue.Value, referred bool)) {
	visit(v, false)
	s := operandVisitor{follow: follow, visit: visit, seen: map[cue.Value]bool{}}
	s.walk(v, 0)
}

type operandVisitor struct {
	follow func(reference cue.Value) bool
	visit  func(v cue.Value, referred bool)
	seen   map[cue.Value]bool
}

// maxChain bounds how many references and operators are followed at one field.
const maxChain = 100

func (s *operandVisitor) walk(v cue.Value, depth int) {
	if depth > maxChain {
		return
	}
	op, args := v.Expr()
	switch op {
	case cue.CallOp:
		if callName(args[0]) != "close" {
			return // the result of a function is not composed of its arguments
		}
		fallthrough
	case cue.AndOp, cue.OrOp:
		for _, a := range args {
			s.visit(a, false)
			s.walk(a, depth+1)
		}
	case cue.SelectorOp, cue.IndexOp:
		if s.follow != nil && !s.follow(v) {
			return
		}
		to := cue.Dereference(v)
		if to != v && to.Exists() && !s.seen[to] {
			s.seen[to] = true
			s.visit(to, true)
			s.walk(to, depth+1)
		}
	case cue.NoOp:
		// A disjunction whose default is an instance of the only other arm is that arm.
		if len(args) == 1 && args[0] != v {
			s.visit(args[0], false)
			s.walk(args[0], depth+1)
		}
	}
}
