package syntax

import (
	"strconv"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// A ComparedLiteral is a literal that the text compares a field of the custom resource with.
type ComparedLiteral struct {
	// Path leads to the field, as in cr, spec, mode.
	Path []string
	// Value is a string or an int64.
	Value any
	// LooksUp is true if the field is not compared with the literal, but the name of what is looked up.
	LooksUp bool
}

// comparing are the operators of comparisons.
var comparing = map[token.Token]bool{token.EQL: true, token.NEQ: true, token.LSS: true, token.LEQ: true, token.GTR: true, token.GEQ: true}

// Compared returns the literals that the text compares fields of the custom resource with, by position.
func (x *Examples) Compared() []ComparedLiteral {
	var out []ComparedLiteral
	add := func(reference, literal ast.Expr) {
		value, ok := literalOf(literal)
		if !ok {
			return
		}
		if path := x.operand(reference).Path; len(path) > 1 && path[0] == "cr" {
			out = append(out, ComparedLiteral{Path: path, Value: value})
		}
	}
	for n := range NodesIn(x.files...) {
		if b, ok := n.(*ast.BinaryExpr); ok && comparing[b.Op] {
			add(b.X, b.Y)
			add(b.Y, b.X)
		}
	}
	return out
}

// literalOf returns the value of a literal string or whole number.
func literalOf(e ast.Expr) (value any, ok bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return nil, false
	}
	switch lit.Kind {
	case token.STRING:
		return unquoted(lit), true
	case token.INT:
		n, err := strconv.ParseInt(lit.Value, 10, 64)
		return n, err == nil
	default:
		return nil, false
	}
}
