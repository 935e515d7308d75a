package vet

import (
	"fmt"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// missingStars finds values beside a type that has them, as in string | "nginx": without a star they change nothing, and
// mostly their author takes them for a default.
func missingStars(v *view) fault.Faults {
	var out fault.Faults
	seen := map[string]bool{}
	find := func(schema cue.Value) {
		if !isScalar(schema) {
			return
		}
		path := schemaPath(schema)
		if text, idle := idleValue(schema); idle && !seen[path] {
			seen[path] = true
			out = append(out, fault.Fault{
				Position: program.PositionOf(schema), Path: path,
				Message: fmt.Sprintf("the value %s changes nothing, because the type beside it has it, and it is no default", text),
				Hint:    fmt.Sprintf("write *%s to make it the default", text),
			})
		}
	}
	eachType(fieldOf(v.CRSchema(), "spec"), 0, find)
	eachType(v.Config().Schema(), 0, find)
	return out
}

// idleValue returns a literal of the text that a type beside it has, if nothing there is a default.
func idleValue(v cue.Value) (text string, idle bool) {
	field, isField := v.Source().(*ast.Field)
	if _, has := v.Default(); !isField || has {
		return "", false
	}
	types := map[string]bool{}
	var literals []*ast.BasicLit
	ast.Walk(field.Value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return n.Op == token.OR
		case *ast.ParenExpr:
			return true
		case *ast.Ident:
			types[n.Name] = n.Node == nil
		case *ast.BasicLit:
			literals = append(literals, n)
		}
		return false
	}, nil)
	for _, l := range literals {
		for _, of := range typesOf[l.Kind] {
			if types[of] {
				return l.Value, true
			}
		}
	}
	return "", false
}

// typesOf are the types that have all literals of a kind.
var typesOf = map[token.Token][]string{
	token.STRING: {"string"}, token.INT: {"int", "number"}, token.FLOAT: {"float", "number"}, token.TRUE: {"bool"}, token.FALSE: {"bool"},
}
