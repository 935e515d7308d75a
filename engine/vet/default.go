package vet

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// defaults finds defaults that do not fit their types. CUE says nothing of either:
// in `int & <=10 | *50` the default is one more alternative, and in
// `<=10 & (*50 | int)` it is dropped.
func defaults(v *view) fault.Faults {
	d := &defaultRule{seen: map[string]bool{}}
	spec, _ := fieldOf(v.CRSchema(), "spec")
	d.walk(spec, 0)
	d.walk(v.ConfigSchema(), 0)
	return d.out
}

type defaultRule struct {
	out  fault.Faults
	seen map[string]bool
}

// maxDepth bounds the walk of a schema that refers to itself.
const maxDepth = 12

func (d *defaultRule) walk(v cue.Value, depth int) {
	if !v.Exists() || depth > maxDepth {
		return
	}
	kind := v.IncompleteKind()
	if kind&cue.StructKind != 0 {
		it, err := v.Fields(cue.Optional(true))
		for err == nil && it.Next() {
			d.walk(it.Value(), depth+1)
		}
		d.walk(v.LookupPath(cue.MakePath(cue.AnyString)), depth+1)
	}
	if kind&cue.ListKind != 0 {
		d.walk(v.LookupPath(cue.MakePath(cue.AnyIndex)), depth+1)
	}
	if kind&(cue.StructKind|cue.ListKind) == 0 {
		d.field(v)
	}
}

// field looks at the default of one field.
func (d *defaultRule) field(v cue.Value) {
	parts := []cue.Value{v}
	if op, args := v.Expr(); op == cue.AndOp {
		parts = args
	}
	_, has := v.Default()
	for _, part := range parts {
		lost, had := part.Default()
		switch {
		case had && !has && !v.IsConcrete():
			d.report(v, fmt.Sprintf("the default %v does not fit the rest of the type, so that the field has none", lost))
		case had && widens(part, lost) && !meant(part):
			d.report(v, fmt.Sprintf("the default %v does not fit the type beside it, so that it is one more value that is allowed", lost))
		}
	}
}

// widens reports whether a default stands in a disjunction beside a type that does
// not include it. Beside single values it is one of an enumeration.
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

// meant reports whether a default is written once more without the mark, as an
// alternative that is meant to be allowed.
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
	for text := range marked {
		if plain[text] {
			return true
		}
	}
	return false
}

func textOf(n ast.Node) string {
	b, err := format.Node(n)
	if err != nil {
		return ""
	}
	return string(b)
}

func (d *defaultRule) report(field cue.Value, message string) {
	path := strings.ReplaceAll(field.Path().String(), ".[_]", "[_]")
	if d.seen[path] {
		return
	}
	d.seen[path] = true
	d.out = append(d.out, fault.Fault{
		Position: program.PositionOf(field),
		Path:     path,
		Message:  message,
		Hint:     "write a default that the type includes; if the value is meant to be allowed, write it without the * as well",
	})
}
