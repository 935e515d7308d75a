package crd

import (
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
)

// spread visits v and the values that it is made of: operands of & and |, arguments of
// calls, and what references refer to. referred is true for the last, nearest first.
//
// Each referred value is visited once: definitions that double each other
// (#A: #B & #B, #B: #C & #C, …) would otherwise take for ever.
func spread(v cue.Value, visit func(v cue.Value, referred bool)) {
	spreadAlong(v, func(cue.Value) bool { return true }, visit)
}

// spreadAlong is spread along those references that count.
func spreadAlong(v cue.Value, counts func(reference cue.Value) bool, visit func(v cue.Value, referred bool)) {
	visit(v, false)
	s := spreader{counts: counts, visit: visit, seen: map[cue.Value]bool{}}
	s.walk(v, 0)
}

type spreader struct {
	counts func(reference cue.Value) bool
	visit  func(v cue.Value, referred bool)
	seen   map[cue.Value]bool
}

// called returns the name of the function that a value is a call of, or "".
func called(v cue.Value) string {
	node := v.Source()
	if f, ok := node.(*ast.Field); ok {
		node = f.Value
	}
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		name, _, _ := ast.LabelName(fun.Sel)
		return name
	}
	return ""
}

// maxChain bounds how many references and operators are followed at one field.
const maxChain = 100

func (s *spreader) walk(v cue.Value, depth int) {
	if depth > maxChain {
		return
	}
	op, args := v.Expr()
	switch op {
	case cue.CallOp:
		if name := called(v); name != "" && name != "close" {
			return // what it makes is something else than what it is given
		}
		fallthrough
	case cue.AndOp, cue.OrOp:
		for _, a := range args {
			s.visit(a, false)
			s.walk(a, depth+1)
		}
	case cue.SelectorOp, cue.IndexOp:
		if !s.counts(v) {
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
