package syntax

import (
	"slices"

	"cuelang.org/go/cue/ast"
)

// maxInlined bounds how many names Known replaces one after the other, as a guard against names that stand
// for each other.
const maxInlined = 8

// Known returns a condition with another expression in the place of each reference into the data of a
// session: from gets the path of the reference. The condition is made of operators, calls and
// literals over such references; ok is false for any other one, and for one without any reference, and those
// that it asks presence of are left as they are. The syntax that is returned is new but for these.
func (x *Index) Known(condition ast.Expr, from func(path []string) ast.Expr) (e ast.Expr, ok bool) {
	k := &known{index: x, from: from}
	e, ok = k.expr(condition, 0)
	return e, ok && k.references > 0
}

// A known replaces the references of one condition.
type known struct {
	index      *Index
	from       func(path []string) ast.Expr
	references int
}

func (k *known) expr(e ast.Expr, depth int) (ast.Expr, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e, true
	case *ast.ParenExpr:
		in, ok := k.expr(e.X, depth)
		return &ast.ParenExpr{Lparen: e.Lparen, X: in, Rparen: e.Rparen}, ok
	case *ast.UnaryExpr:
		in, ok := k.expr(e.X, depth)
		return &ast.UnaryExpr{OpPos: e.OpPos, Op: e.Op, X: in}, ok
	case *ast.BinaryExpr:
		if _, root := k.index.Presence(e); root != nil {
			return e, true
		}
		left, ok := k.expr(e.X, depth)
		right, alsoOK := k.expr(e.Y, depth)
		return &ast.BinaryExpr{X: left, OpPos: e.OpPos, Op: e.Op, Y: right}, ok && alsoOK
	case *ast.CallExpr:
		args, ok := k.exprs(e.Args, depth)
		return &ast.CallExpr{Fun: e.Fun, Lparen: e.Lparen, Args: args, Rparen: e.Rparen}, ok && k.isFunction(e.Fun)
	case *ast.Interpolation:
		elts, ok := k.exprs(e.Elts, depth)
		return &ast.Interpolation{Elts: elts}, ok
	}
	return k.chain(e, depth)
}

func (k *known) exprs(all []ast.Expr, depth int) ([]ast.Expr, bool) {
	out := make([]ast.Expr, len(all))
	for i, e := range all {
		var ok bool
		if out[i], ok = k.expr(e, depth); !ok {
			return nil, false
		}
	}
	return out, true
}

// isFunction reports whether what is called is a function of CUE.
func (k *known) isFunction(e ast.Expr) bool {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return importedPath(s.X) != ""
	}
	id, ok := e.(*ast.Ident)
	return ok && id.Node == nil && len(k.index.fields[id.Name]) == 0
}

// chain replaces a reference: by what leads to the data, or by what the name of a hidden field stands
// for that has one declaration.
func (k *known) chain(e ast.Expr, depth int) (ast.Expr, bool) {
	c := chainOf(e)
	names, all := c.literal()
	root := c.root()
	if root == nil || !all || !atRoot(root) {
		return nil, false
	}
	name := fieldName(root)
	if slices.Contains(roots, name) {
		k.references++
		return k.from(append([]string{name}, names...)), k.index.filledOnly(name, names)
	}
	declared := k.index.fields[name]
	if len(declared) != 1 || declared[0].value == nil || len(declared[0].guards) > 0 || depth >= maxInlined {
		return nil, false
	}
	value := declared[0].value
	for _, n := range names {
		value = &ast.SelectorExpr{X: value, Sel: ast.NewString(n)}
	}
	if len(names) > 0 {
		return k.chain(value, depth+1) // it has to stand for a chain
	}
	return k.expr(value, depth+1)
}
