package syntax

import (
	"slices"

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
	// IsWhole is true if the field is nothing but itself here, as in data: {name: name}. Then it may have a value
	// from another place.
	IsWhole bool
	// Variable is where a variable of that name is, which the field hides.
	Variable fault.Position
	// Path is where the field is, if the text shows it.
	Path []string
}

// SelfReferences returns the self references in the author's files, in their order. A field that is an alternative of
// itself has a value, and is none.
func (x *Index) SelfReferences() []SelfReference {
	var out []SelfReference
	for _, f := range x.files {
		var around []ast.Node
		ast.Walk(f, func(n ast.Node) bool {
			around = append(around, n)
			if field, is := n.(*ast.Field); is && field.Value != nil {
				for _, r := range selfReferences(field) {
					r.Path, r.Variable = pathOf(around), hiddenBy(r.Name, around)
					out = append(out, r)
				}
			}
			return true
		}, func(ast.Node) { around = around[:len(around)-1] })
	}
	return out
}

// hiddenBy returns where the closest variable of a name is in some nodes, each of which is in the one before.
func hiddenBy(name string, nodes []ast.Node) fault.Position {
	for _, n := range slices.Backward(nodes) {
		for _, id := range variablesOf(n) {
			if id != nil && id.Name == name {
				return fault.PositionAt(id.Pos())
			}
		}
	}
	return fault.Position{}
}

// HiddenVariables returns where fields have the name of a variable that may be referred to there, and where that is.
func HiddenVariables(files []*ast.File) map[fault.Position]fault.Position {
	out := map[fault.Position]fault.Position{}
	for _, f := range files {
		if f == nil {
			continue // it does not parse
		}
		var around []ast.Node
		ast.Walk(f, func(n ast.Node) bool {
			around = append(around, n)
			if field, is := n.(*ast.Field); is {
				if label, isName := field.Label.(*ast.Ident); isName {
					if at := hiddenBy(label.Name, around); !at.IsZero() {
						out[fault.PositionAt(label.Pos())] = at
					}
				}
			}
			return true
		}, func(ast.Node) { around = around[:len(around)-1] })
	}
	return out
}

// variablesOf returns the variables that may be referred to within a node.
func variablesOf(n ast.Node) []*ast.Ident {
	var out []*ast.Ident
	add := func(n ast.Node) {
		switch n := n.(type) {
		case *ast.ForClause:
			out = append(out, n.Key, n.Value)
		case *ast.LetClause:
			out = append(out, n.Ident)
		}
	}
	switch n := n.(type) {
	case *ast.Comprehension:
		for _, c := range n.Clauses {
			add(c)
		}
	case *ast.StructLit:
		for _, d := range n.Elts {
			add(d)
		}
	case *ast.File:
		for _, d := range n.Decls {
			add(d)
		}
	}
	return out
}

// pathOf returns the path of the last of some nodes, each of which is in the one before, or nil if the text does not show
// it: it is in a loop, in a call, or has a computed label.
func pathOf(nodes []ast.Node) []string {
	var out []string
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.Field:
			name, ok := literalLabel(n.Label)
			if !ok {
				return nil
			}
			out = append(out, name)
		case *ast.File, *ast.StructLit, *ast.EmbedDecl:
		case *ast.BinaryExpr:
			if n.Op != token.AND {
				return nil
			}
		default:
			return nil
		}
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
			if e.Node == value {
				out = append(out, SelfReference{Position: fault.PositionAt(e.Pos()), Name: e.Name, IsWhole: !computes})
			}
		case *ast.BinaryExpr:
			if e.Op == token.OR && !computes {
				return // another alternative is a value
			}
			visit(e.X, computes || e.Op != token.AND)
			visit(e.Y, computes || e.Op != token.AND)
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
