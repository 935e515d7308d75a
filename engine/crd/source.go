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

// literals returns the struct literals that v is made of, through references and
// whatever operators. For {#A, x: 1} they are the literal itself and that of #A.
func literals(v cue.Value) []*ast.StructLit {
	var found []*ast.StructLit
	spread(v, func(v cue.Value, _ bool) {
		for _, e := range expressions(v) {
			if l, ok := e.(*ast.StructLit); ok && !slices.Contains(found, l) {
				found = append(found, l)
			}
		}
	})
	return found
}

// expressions returns what was written for v itself, in each place where it was.
func expressions(v cue.Value) []ast.Expr {
	switch src := v.Source().(type) {
	case *ast.Field:
		return []ast.Expr{src.Value}
	case ast.Expr:
		return []ast.Expr{src}
	}
	var all []ast.Expr
	if op, args := v.Expr(); op == cue.AndOp {
		for _, a := range args {
			all = append(all, expressions(a)...)
		}
	}
	return all
}

// recursive reports a definition that contains itself. CUE evaluates one of these to an
// error, or to null where null ends the recursion, or lazily without an end.
func (g *generator) recursive(at site, v, base cue.Value, marks marks) bool {
	ends := base.IncompleteKind()&^cue.NullKind == cue.BottomKind
	for _, l := range literals(v) {
		before := at.inside(l)
		if len(before) == 0 || !ends && !marks.preserve && len(before) < maxNesting {
			continue
		}
		if len(before) > 1 {
			at.path, at.pos = before[1].path, before[1].pos // the first time that it was within itself
		}
		g.fault(at, "the definition contains itself, and a CRD has no references",
			"write out as many levels as are needed, or @crd(preserveUnknownFields) here")
		return true
	}
	return false
}

// message is the most specific line of an error from CUE: a failing disjunction begins with
// the number of its arms.
func message(err error) string {
	all := errors.Errors(err)
	format, args := all[len(all)-1].Msg()
	return fmt.Sprintf(format, args...)
}
