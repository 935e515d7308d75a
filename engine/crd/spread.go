package crd

import "cuelang.org/go/cue"

// spread visits v and the values that it is made of: operands of & and |, arguments of
// calls, and what references refer to. referred is true for the last, nearest first.
//
// Each referred value is visited once: definitions that double each other
// (#A: #B & #B, #B: #C & #C, …) would otherwise take for ever.
func spread(v cue.Value, visit func(v cue.Value, referred bool)) {
	visit(v, false)
	s := spreader{visit: visit, seen: map[cue.Value]bool{}}
	s.walk(v, 0)
}

type spreader struct {
	visit func(v cue.Value, referred bool)
	seen  map[cue.Value]bool
}

// maxChain bounds how many references and operators are followed at one field.
const maxChain = 100

func (s *spreader) walk(v cue.Value, depth int) {
	if depth > maxChain {
		return
	}
	op, args := v.Expr()
	switch op {
	case cue.AndOp, cue.OrOp, cue.CallOp: // a call such as close({…})
		for _, a := range args {
			s.visit(a, false)
			s.walk(a, depth+1)
		}
	case cue.SelectorOp, cue.IndexOp:
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
