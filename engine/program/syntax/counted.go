package syntax

import (
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// An ElementCount is a number of elements at which the text does something else with a list or a map of the custom resource.
type ElementCount struct {
	// Path leads to the list or map, as in cr, spec, hosts.
	Path []string
	// Counts are the number and its neighbours: the longest list on one side of the boundary and the shortest on the other
	// one. One may be negative.
	Counts []int
}

// Counted returns the numbers of elements that the text compares with, requires or indexes, in the order of the text.
func (x *Examples) Counted() []ElementCount {
	var out []ElementCount
	add := func(list ast.Expr, counts ...int) {
		if path := x.operand(list).Path; len(path) > 1 && path[0] == "cr" {
			out = append(out, ElementCount{Path: path, Counts: counts})
		}
	}
	for n := range NodesIn(x.files...) {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			countedBy(n.Op, n.X, n.Y, add)
			countedBy(n.Op, n.Y, n.X, add)
		case *ast.IndexExpr:
			if at, ok := wholeNumber(n.Index); ok {
				add(n.X, at, at+1)
			}
		case *ast.SliceExpr:
			for _, end := range []ast.Expr{n.Low, n.High} {
				if at, ok := wholeNumber(end); ok {
					add(n.X, at-1, at)
				}
			}
		}
	}
	return out
}

// countedBy adds what an operator says of the number of elements: a comparison of len with a literal, or a list unified with
// list.MaxItems or the like.
func countedBy(op token.Token, a, b ast.Expr, add func(list ast.Expr, counts ...int)) {
	call, ok := unparenthesized(a).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return
	}
	name := function(call.Fun)
	if name == "len" && comparing[op] {
		if n, ok := wholeNumber(b); ok {
			add(call.Args[0], n-1, n, n+1)
		}
		return
	}
	if n, ok := wholeNumber(call.Args[0]); ok && op == token.AND {
		switch name {
		case "list.MaxItems", "struct.MaxFields":
			add(b, n, n+1)
		case "list.MinItems", "struct.MinFields":
			add(b, n-1, n)
		}
	}
}

// wholeNumber returns the value of a literal whole number that counts elements.
func wholeNumber(e ast.Expr) (int, bool) {
	value, _ := literalOf(e)
	n, ok := value.(int64)
	return int(n), ok && n >= 0 && n <= maxCounted
}

// maxCounted bounds the numbers that count elements here: nobody makes longer lists.
const maxCounted = 1_000_000
