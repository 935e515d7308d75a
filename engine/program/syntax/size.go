package syntax

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// sizes computes how large expressions may become.
type sizes struct {
	index *Index
	// roots are the values that a user gives, by the name of their root field.
	roots map[string]UserValue
	found map[place][]origin
	known map[ast.Expr]Amount
}

// place is a path below an expression.
type place struct {
	of   ast.Expr
	path string
}

// of returns how large an expression may become. If the expression refers to itself, its size is
// unknown.
func (s *sizes) of(e ast.Expr) Amount {
	if a, done := s.known[e]; done || e == nil {
		return a
	}
	s.known[e] = Amount{}
	s.known[e] = s.size(e)
	return s.known[e]
}

func (s *sizes) size(e ast.Expr) Amount {
	switch e := e.(type) {
	case *ast.BasicLit:
		return sizeOfLiteral(e)
	case *ast.Interpolation:
		var out Amount
		for _, part := range e.Elts {
			out = add(out, s.of(part))
		}
		return out
	case *ast.ParenExpr:
		return s.of(e.X)
	case *ast.Alias:
		return s.of(e.Expr)
	case *ast.UnaryExpr:
		return s.unary(e)
	case *ast.BinaryExpr:
		return s.binary(e)
	case *ast.CallExpr:
		return s.call(e)
	case *ast.ListLit:
		return s.list(e)
	case *ast.StructLit:
		return s.structure(e)
	case *ast.Ident:
		if a, ok := predeclared[e.Name]; ok && e.Node == nil {
			return a
		}
	}
	return s.together(s.origins(e))
}

// predeclared are the types that have limits.
var predeclared = map[string]Amount{
	"uint8": atMost(math.MaxUint8), "int8": atMost(math.MaxInt8),
	"uint16": atMost(math.MaxUint16), "int16": atMost(math.MaxInt16),
}

// together returns the size of an expression that stands for some origins.
func (s *sizes) together(of []origin) Amount {
	var all, one Amount
	for _, o := range of {
		if o.alternative {
			one = either(one, s.origin(o))
		} else {
			all = both(all, s.origin(o))
		}
	}
	return both(all, one)
}

func (s *sizes) origin(o origin) Amount {
	switch {
	case o.made != nil:
		return *o.made
	case o.expr != nil:
		return s.of(o.expr)
	}
	kind := kindsOf(o.Schema)
	return Amount{
		Interval: o.Limits(o.Schema, o.within), From: o.path, Kind: kind,
		known: true, many: kind&(cue.StructKind|cue.ListKind) != 0,
	}
}

// kindsOf returns the kinds that a schema allows. Where no value fits yet, as with a map that needs an entry
// (struct.MinFields), CUE says that there are none, and what the schema is made of says which.
func kindsOf(schema cue.Value) cue.Kind {
	kind := schema.IncompleteKind()
	op, operands := schema.Expr()
	if kind != cue.BottomKind || op != cue.AndOp {
		return kind
	}
	kind = cue.TopKind
	for _, operand := range operands {
		kind &= kindsOf(operand)
	}
	return kind
}

func sizeOfLiteral(e *ast.BasicLit) Amount {
	switch e.Kind {
	case token.INT, token.FLOAT:
		var n literal.NumInfo
		if err := literal.ParseNum(e.Value, &n); err != nil {
			return Amount{}
		}
		f, err := strconv.ParseFloat(n.String(), 64)
		if err != nil {
			return Amount{}
		}
		return constant(f)
	case token.STRING:
		return constant(float64(utf8.RuneCountInString(e.Value)))
	}
	return Amount{}
}

func (s *sizes) unary(e *ast.UnaryExpr) Amount {
	x := s.of(e.X)
	switch e.Op {
	case token.MUL, token.ADD:
		return x
	case token.SUB:
		return subtract(constant(0), x)
	case token.LEQ, token.LSS:
		x.Low, x.bound = math.Inf(-1), true
		return x
	case token.GEQ, token.GTR:
		x.High, x.bound, x.From = math.Inf(1), true, ""
		return x
	}
	return Amount{}
}

func (s *sizes) binary(e *ast.BinaryExpr) Amount {
	x, y := s.of(e.X), s.of(e.Y)
	switch e.Op {
	case token.AND:
		return both(x, y)
	case token.OR:
		return either(x, y)
	case token.ADD:
		return add(x, y)
	case token.SUB:
		return subtract(x, y)
	case token.MUL:
		return multiply(x, y)
	case token.QUO:
		return x
	}
	return Amount{}
}

// list returns how many elements a list has.
func (s *sizes) list(l *ast.ListLit) Amount {
	out := constant(0)
	out.many = true
	for _, elt := range l.Elts {
		switch elt := elt.(type) {
		case *ast.Ellipsis:
		case *ast.Comprehension:
			out = add(out, s.loop(elt))
		default:
			out = add(out, constant(1))
		}
	}
	return out
}

// structure returns how many fields a struct has, or the size of the value that it embeds
// if it has no fields.
func (s *sizes) structure(l *ast.StructLit) Amount {
	fields := constant(0)
	fields.many = true
	var embedded Amount
	for _, d := range l.Elts {
		switch d := d.(type) {
		case *ast.Field:
			if kindOf(d) != pattern {
				fields = add(fields, constant(1))
			}
		case *ast.Comprehension:
			fields = add(fields, multiply(s.loop(d), s.of(d.Value)))
		case *ast.EmbedDecl:
			embedded = both(embedded, s.of(d.Expr))
		}
	}
	if embedded.known && !embedded.many && fields.High == 0 {
		return embedded
	}
	return both(fields, embedded)
}

// loop returns how often a comprehension yields something at most.
func (s *sizes) loop(c *ast.Comprehension) Amount {
	out := constant(1)
	for _, clause := range c.Clauses {
		if f, ok := clause.(*ast.ForClause); ok {
			out = multiply(out, s.of(f.Source).count())
			out.made = true
		}
	}
	return out
}

// function returns the name of a called function: len, or list.Range with its import path.
func function(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if e.Node == nil {
			return e.Name
		}
	case *ast.SelectorExpr:
		path, _, _ := strings.Cut(importedPath(e.X), ":")
		if name, named := literalLabel(e.Sel); named && path != "" {
			return path + "." + name
		}
	}
	return ""
}
