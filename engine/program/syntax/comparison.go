package syntax

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// A Comparison is an == or a != in the text of a package. CUE compares values of
// any two types, and finds them different, so that a wrong type never shows.
type Comparison struct {
	// Source is the comparison as the author wrote it.
	Source      string
	Position    fault.Position
	Left, Right Operand
}

// An Operand is one side of a comparison, as far as the text shows.
type Operand struct {
	// Kind is the kind of a literal, or BottomKind for anything else.
	Kind cue.Kind
	// Path is where a reference leads; it is nil for anything else.
	Path []string
}

// Comparisons returns the comparisons of a package, by position.
func (x *Index) Comparisons() []Comparison {
	var out []Comparison
	for n := range NodesIn(x.files...) {
		b, ok := n.(*ast.BinaryExpr)
		if ok && (b.Op == token.EQL || b.Op == token.NEQ) {
			out = append(out, Comparison{
				Source:   Source(b),
				Position: fault.PositionAt(b.Pos()),
				Left:     x.operand(b.X),
				Right:    x.operand(b.Y),
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Comparison) int { return fault.Compare(a.Position, b.Position) })
	return out
}

// operand returns one side of a comparison.
func (x *names) operand(e ast.Expr) Operand {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return x.operand(e.X)
	case *ast.UnaryExpr:
		if e.Op == token.SUB || e.Op == token.ADD {
			return x.operand(e.X)
		}
	case *ast.Interpolation:
		return Operand{Kind: cue.StringKind}
	case *ast.StructLit:
		return Operand{Kind: cue.StructKind}
	case *ast.ListLit:
		return Operand{Kind: cue.ListKind}
	case *ast.BasicLit:
		return Operand{Kind: literalKinds[e.Kind]}
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		if path, ok := x.pathThrough(nil, Member{value: e}, 0); ok {
			return Operand{Path: path}
		}
	}
	return Operand{}
}

var literalKinds = map[token.Token]cue.Kind{
	token.STRING: cue.StringKind,
	token.INT:    cue.NumberKind, // 3 == 3.0
	token.FLOAT:  cue.NumberKind,
	token.TRUE:   cue.BoolKind,
	token.FALSE:  cue.BoolKind,
	token.NULL:   cue.NullKind,
}
