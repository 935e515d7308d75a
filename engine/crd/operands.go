package crd

import (
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
)

// visitOperands visits v and the values that it is composed of: operands of & and |, arguments
// of calls, and targets of references. referred is true for targets of references; the nearest
// is visited first.
//
// Each target is visited once: definitions that double each other
// (#A: #B & #B, #B: #C & #C, …) would otherwise take exponential time.
func visitOperands(v cue.Value, visit func(v cue.Value, referred bool)) {
	visitOperandsAlong(v, func(cue.Value) bool { return true }, visit)
}

// visitOperandsAlong is visitOperands along the references for which follow is true.
func visitOperandsAlong(v cue.Value, follow func(reference cue.Value) bool, visit func(v cue.Value, referred bool)) {
	visit(v, false)
	s := operandVisitor{follow: follow, visit: visit, seen: map[cue.Value]bool{}}
	s.walk(v, 0)
}

type operandVisitor struct {
	follow func(reference cue.Value) bool
	visit  func(v cue.Value, referred bool)
	seen   map[cue.Value]bool
}

// calleeName returns the name of the function if a value is a call, or "".
func calleeName(v cue.Value) string {
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

func (s *operandVisitor) walk(v cue.Value, depth int) {
	if depth > maxChain {
		return
	}
	op, args := v.Expr()
	switch op {
	case cue.CallOp:
		if name := calleeName(v); name != "" && name != "close" {
			return // the result of a function is not composed of its arguments
		}
		fallthrough
	case cue.AndOp, cue.OrOp:
		for _, a := range args {
			s.visit(a, false)
			s.walk(a, depth+1)
		}
	case cue.SelectorOp, cue.IndexOp:
		if !s.follow(v) {
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
