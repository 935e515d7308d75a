package crd

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
)

// Evaluation resolves a reference to a field with a default as if the default were
// the value, so {min: int | *1, max: int & >=min} looks like {max: int & >=1}. A CRD made
// from that would refuse what CUE accepts. Only the source shows the reference.

// structLiterals returns the struct literals that v is composed of, through references and
// operators. For {#A, x: 1} they are the literal itself and that of #A.
func structLiterals(v cue.Value) []*ast.StructLit {
	var found []*ast.StructLit
	for v := range operands(v, nil) {
		for _, e := range sourceExpressions(v) {
			if l, ok := e.(*ast.StructLit); ok && !slices.Contains(found, l) {
				found = append(found, l)
			}
		}
	}
	return found
}

// sourceExpressions returns the source expressions of v, one for each place that declares it.
func sourceExpressions(v cue.Value) []ast.Expr {
	switch src := v.Source().(type) {
	case *ast.Field:
		return []ast.Expr{src.Value}
	case ast.Expr:
		return []ast.Expr{src}
	}
	var all []ast.Expr
	if op, args := v.Expr(); op == cue.AndOp {
		for _, a := range args {
			all = append(all, sourceExpressions(a)...)
		}
	}
	return all
}

// reportRecursion reports whether a definition contains itself, and adds a fault if it does.
// CUE evaluates such a definition to an error, or to null if null ends the recursion, or
// lazily without an end.
func (g *generator) reportRecursion(at location, v, base cue.Value, attrs attributes) bool {
	ends := base.IncompleteKind()&^cue.NullKind == cue.BottomKind
	for _, l := range structLiterals(v) {
		before := at.occurrencesOf(l)
		if len(before) == 0 || !ends && !attrs.preserve && len(before) < maxRecursion {
			continue
		}
		if len(before) > 1 {
			at.path, at.pos = before[1].path, before[1].pos // where it first occurred within itself
		}
		g.fault(at, "the definition contains itself, and a CRD has no references",
			"write out as many levels as are needed, or @crd(preserveUnknownFields) here")
		return true
	}
	return false
}

// errorMessage returns the most specific line of a CUE error: the first line of a failing
// disjunction is only the number of its arms.
func errorMessage(err error) string {
	all := errors.Errors(err)
	format, args := all[len(all)-1].Msg()
	return fmt.Sprintf(format, args...)
}
