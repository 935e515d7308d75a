package syntax

import (
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// A SelfReference is a name in the value of a field that means this field itself, as name does in
// metadata: name: "\(name)-x". CUE looks for a name in the innermost struct first, so it is no variable outside of that.
// Such a value has nothing to be made of.
type SelfReference struct {
	Position fault.Position
	Name     string
}

// SelfReferences returns the self references in the author's files, in their order. A field that is unified with
// itself, or is an alternative of itself, has a value, and is none.
func (x *Index) SelfReferences() []SelfReference {
	var out []SelfReference
	for _, f := range x.files {
		ast.Walk(f, func(n ast.Node) bool {
			if field, is := n.(*ast.Field); is && field.Value != nil {
				out = append(out, selfReferences(field)...)
			}
			return true
		}, nil)
	}
	return out
}

// selfReferences returns the self references that the value of a field computes with.
func selfReferences(field *ast.Field) []SelfReference {
	var out []SelfReference
	value := unaliased(field.Value)
	var visit func(e ast.Node, computes bool)
	visit = func(e ast.Node, computes bool) {
		switch e := e.(type) {
		case *ast.Ident:
			if computes && e.Node == value {
				out = append(out, SelfReference{Position: fault.At(e.Pos()), Name: e.Name})
			}
		case *ast.BinaryExpr:
			unifies := e.Op == token.AND || e.Op == token.OR
			visit(e.X, computes || !unifies)
			visit(e.Y, computes || !unifies)
		case *ast.Interpolation:
			for _, part := range e.Elts {
				visit(part, true)
			}
		case *ast.CallExpr:
			for _, arg := range e.Args {
				visit(arg, true)
			}
		case *ast.ParenExpr:
			visit(e.X, computes)
		case *ast.UnaryExpr:
			visit(e.X, computes)
		case *ast.SelectorExpr:
			visit(e.X, computes)
		case *ast.IndexExpr:
			visit(e.X, computes)
			visit(e.Index, true)
		default: // a struct, a list or a loop may refer to what it is a part of
		}
	}
	visit(value, false)
	return out
}
