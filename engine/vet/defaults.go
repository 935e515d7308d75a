package vet

import (
	"fmt"
	"maps"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// defaults finds defaults that are not values of their types. CUE accepts both forms: in
// `int & <=10 | *50` the default is an additional alternative, and in `<=10 & (*50 | int)` it is
// dropped.
func defaults(v *view) fault.Faults {
	d := &defaultRule{seen: map[string]bool{}}
	eachType(fieldOf(v.CRSchema(), "spec"), 0, d.field)
	eachType(v.Config().Schema(), 0, d.field)
	return d.out
}

type defaultRule struct {
	out  fault.Faults
	seen map[string]bool
}

// field checks the default of one field.
func (d *defaultRule) field(v cue.Value) {
	if !isScalar(v) {
		return
	}
	parts := []cue.Value{v}
	if op, args := v.Expr(); op == cue.AndOp {
		parts = args
	}
	_, has := v.Default()
	for _, part := range parts {
		lost, had := part.Default()
		switch {
		case had && !has && !v.IsConcrete():
			d.report(v, fmt.Sprintf("the default %v does not satisfy the rest of the type, so the field has no default", lost))
		case had && widens(part, lost) && !meant(part):
			d.report(v, fmt.Sprintf("the default %v is not a value of the type beside it, so it is allowed as an additional value", lost))
		}
	}
}

// widens reports whether a default is in a disjunction with a type that does not include it. Beside
// single values, it is a value of the enumeration.
func widens(v, fallback cue.Value) bool {
	op, args := v.Expr()
	if op != cue.OrOp {
		return false
	}
	types := false
	for _, a := range args {
		switch {
		case a.IsConcrete():
		case a.Subsume(fallback) == nil:
			return false
		default:
			types = true
		}
	}
	return types
}

// meant reports whether a default is also written without the *, as an alternative that the author
// intends to allow.
func meant(v cue.Value) bool {
	node := v.Source()
	if f, ok := node.(*ast.Field); ok {
		node = f.Value
	}
	if node == nil {
		return false
	}
	marked, plain := map[string]bool{}, map[string]bool{}
	ast.Walk(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return n.Op == token.OR
		case *ast.UnaryExpr:
			if n.Op == token.MUL {
				marked[textOf(n.X)] = true
				return false
			}
		case *ast.ParenExpr:
			return true
		}
		plain[textOf(n)] = true
		return false
	}, nil)
	maps.DeleteFunc(marked, func(text string, _ bool) bool { return !plain[text] })
	return len(marked) > 0
}

// schemaPath returns the path of a field of a schema, as faults show it.
func schemaPath(field cue.Value) string {
	return strings.ReplaceAll(field.Path().String(), ".[_]", "[_]")
}

func textOf(n ast.Node) string {
	b, err := format.Node(n)
	if err != nil {
		return ""
	}
	return string(b)
}

func (d *defaultRule) report(field cue.Value, message string) {
	path := schemaPath(field)
	if d.seen[path] {
		return
	}
	d.seen[path] = true
	d.out = append(d.out, fault.Fault{
		Position: program.PositionOf(field),
		Path:     path,
		Message:  message,
		Hint:     "write a default that the type includes; if the additional value is intended, also write it without the *",
	})
}
