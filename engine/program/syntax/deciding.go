package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// Presence returns the chain of selections and its root, if a comparison asks only whether there is
// something at a path in the resource, the live objects or the inputs. Otherwise the root is nil.
func (x *names) Presence(e *ast.BinaryExpr) (chain ast.Expr, root *ast.Ident) {
	if _, ok := e.Y.(*ast.BottomLit); !ok || !isBottomComparison(e) {
		return nil, nil
	}
	c := chainOf(e.X)
	id := c.root()
	names, all := c.literal()
	if id == nil || !all || !atRoot(id) || !x.filledOnly(id.Name, names) {
		return nil, nil
	}
	return e.X, id
}

// filledOnly reports whether what a path leads to is only filled in: what the package declares there
// itself may have a default.
func (x *names) filledOnly(root string, path []string) bool {
	switch root {
	case "cr":
		return true
	case "live":
		return len(x.Declared(root)) == 0
	case "inputs":
		isObject := func(p []string) bool { return len(p) > 1 && strings.HasPrefix(p[1], "object") }
		return isObject(path) && !slices.ContainsFunc(x.Declared(root), isObject)
	}
	return false
}

func isBottomComparison(e *ast.BinaryExpr) bool {
	_, left := e.X.(*ast.BottomLit)
	_, right := e.Y.(*ast.BottomLit)
	return (e.Op == token.EQL || e.Op == token.NEQ) && (left || right)
}

// Deciding returns the references whose values decide about the form of what the package says, and
// not only about a scalar in it: those in the conditions of comprehensions and in comparisons with bottom.
// Conditions that are Known are left out: only their outcome decides. It is a first guess: what parameters
// of templates decide is left to whoever evaluates.
func (x *Index) Deciding() []Reference {
	var out []Reference
	for n := range NodesIn(x.files...) {
		switch n := n.(type) {
		case *ast.IfClause:
			if _, ok := x.Known(n.Condition, func([]string) ast.Expr { return nil }); !ok {
				out = append(out, x.valuesIn(n.Condition, false)...)
			}
		case *ast.BinaryExpr:
			if isBottomComparison(n) {
				out = append(out, x.valuesIn(n, false)...)
			}
		}
	}
	return out
}

// ReferencesIn returns the references by whose values an expression differs, also by way of other
// names: all but those of which it asks only whether there is something, or how much.
func (x *Index) ReferencesIn(e ast.Expr) []Reference { return x.valuesIn(e, true) }

// valuesIn is ReferencesIn, with or without the parameters that templates are given.
func (x *Index) valuesIn(e ast.Expr, parameters bool) []Reference {
	r := newReferences(x)
	r.follow, r.parameters = true, parameters
	r.skip = func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && function(call.Fun) == "len" {
			return true // how many there are is part of the form
		}
		b, ok := n.(*ast.BinaryExpr)
		if !ok {
			return false
		}
		_, root := x.Presence(b)
		return root != nil
	}
	r.walk(e)
	return append(r.all(), x.elementsIn(e)...)
}

// elementsIn returns the references to elements of what comprehensions go over.
func (x *names) elementsIn(e ast.Expr) []Reference {
	var out []Reference
	ast.Walk(e, func(n ast.Node) bool {
		c, ok := asChain(n)
		if !ok {
			return true
		}
		id := c.root()
		if id == nil {
			return true
		}
		scope, ok := id.Scope.(*ast.ForClause)
		if !ok || scope.Key != nil && scope.Key.Name == id.Name {
			return true
		}
		from := chainOf(scope.Source)
		root := from.root()
		if root == nil {
			return true
		}
		if path, ok := x.pathOf(root, 0); ok {
			names, all := from.literal()
			path = slices.Concat(path, names)
			if inner, _ := c.literal(); all {
				path = slices.Concat(path, []string{Each}, inner)
			}
			out = append(out, Reference{Path: path, Position: fault.PositionAt(id.Pos())})
		}
		return false
	}, nil)
	return out
}

// PathOf returns what a chain of selections in the text leads to, if that is in one of the fields
// that the engine fills.
func (x *names) PathOf(e ast.Expr) ([]string, bool) {
	c := chainOf(e)
	names, all := c.literal()
	if c.root() == nil || !all {
		return nil, false
	}
	path, ok := x.pathOf(c.root(), 0)
	return append(path, names...), ok
}
