package syntax

import (
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// What a package declares of a value from outside is a type: it constrains the value, and it may look at
// parts of it that nothing else in the package refers to, to compute a field or to choose a
// disjunct. This file finds those parts in the text.
//
// A closed struct looks at none but the fields that it allows. A struct that is open looks at those that it declares
// or, if something in the type refers to more than definitions, at any.

// Declarations returns what the package looks at of the live objects, or of the inputs, because it declares types for them.
func (x *Index) Declarations(root string) []Reading { return slices.Clone(x.declarations[root]) }

// addDeclarations records what the declared types look at.
func (x *reader) addDeclarations() {
	for _, root := range []string{"live", "inputs"} {
		for _, m := range x.fields[root] {
			r := &typeReader{rooted: true}
			x.declarations[root] = append(x.declarations[root], r.of(x.Index, m.value, false).readings([]string{root})...)
		}
	}
}

// maxTypeSteps bounds the size of a type that is looked at; a larger one looks at everything.
const maxTypeSteps = 20_000

// A typeReader finds out what a type looks at.
type typeReader struct {
	// rooted is true while structs are read whose fields have paths: references to them are
	// among the readings of the package.
	rooted bool
	// refers is true if something in the type refers to more than definitions.
	refers bool
	// within are the declarations that enclose the place that is being read.
	within map[ast.Node]bool
	steps  int
}

// apart returns what a type looks at that is not one of the structs whose fields have paths.
func (r *typeReader) apart(x *Index, e ast.Expr, closed bool) *typePart {
	if !r.rooted {
		return r.of(x, e, closed)
	}
	inner := &typeReader{steps: r.steps}
	out := inner.of(x, e, closed)
	r.steps = inner.steps
	if inner.refers {
		out.makeOpenWhole()
	}
	return out
}

// of returns what a type looks at. A literal struct is closed if it is in a definition.
func (r *typeReader) of(x *Index, e ast.Expr, closed bool) *typePart {
	if r.steps++; r.steps > maxTypeSteps {
		return &typePart{whole: true}
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return r.of(x, e.X, closed)
	case *ast.Alias:
		r.refers = true
		return r.of(x, e.Expr, closed)
	case *ast.StructLit:
		return r.structure(x, e, closed)
	case *ast.ListLit:
		return r.list(x, e, closed)
	case *ast.BinaryExpr:
		return r.binary(x, e, closed)
	case *ast.UnaryExpr:
		return r.unary(x, e, closed)
	case *ast.BasicLit, *ast.BottomLit:
		return &typePart{scalar: true, closed: true}
	case *ast.Interpolation:
		r.looksAt(x, e)
		return &typePart{scalar: true, closed: true}
	case *ast.CallExpr:
		if r.rooted {
			return r.apart(x, e, closed)
		}
		if function(e.Fun) == "close" && len(e.Args) == 1 {
			out := *r.of(x, e.Args[0], closed)
			out.closed = true
			return &out
		}
	case *ast.Ident, *ast.SelectorExpr:
		return r.byName(x, e)
	}
	r.looksAt(x, e)
	return &typePart{whole: true}
}

func (r *typeReader) binary(x *Index, e *ast.BinaryExpr, closed bool) *typePart {
	switch e.Op {
	case token.AND:
		return unified(r.of(x, e.X, closed), r.of(x, e.Y, closed))
	case token.OR:
		return disjoined(r.of(x, e.X, closed), r.of(x, e.Y, closed))
	default:
		r.looksAt(x, e)
		return &typePart{whole: true}
	}
}

func (r *typeReader) unary(x *Index, e *ast.UnaryExpr, closed bool) *typePart {
	switch e.Op {
	case token.MUL:
		return r.of(x, e.X, closed)
	case token.LSS, token.LEQ, token.GTR, token.GEQ, token.MAT, token.NMAT:
		r.looksAt(x, e)
		return &typePart{scalar: true, closed: true}
	default:
		r.looksAt(x, e)
		return &typePart{whole: true}
	}
}

// list returns what the type of a list looks at.
func (r *typeReader) list(x *Index, l *ast.ListLit, closed bool) *typePart {
	out := &typePart{}
	for _, e := range l.Elts {
		switch t := e.(type) {
		case *ast.Ellipsis:
			if e = t.Type; e == nil {
				e = ast.NewIdent("_")
			}
		case *ast.Comprehension:
			r.looksAt(x, t)
			return &typePart{whole: true}
		}
		out.add(Each, r.apart(x, e, closed))
	}
	if len(l.Elts) == 0 {
		out.whole = true // it says how many there are
	}
	return out
}

// structure returns what a literal struct looks at.
func (r *typeReader) structure(x *Index, s *ast.StructLit, closed bool) *typePart {
	out := &structPart{typePart: &typePart{closed: closed}, closes: closed}
	for _, d := range s.Elts {
		switch d := d.(type) {
		case *ast.Field:
			r.field(x, out.typePart, d, closed)
		case *ast.EmbedDecl:
			_, literal := d.Expr.(*ast.StructLit)
			out.embeds = out.embeds || !literal
			out.embed(r.of(x, d.Expr, closed), true)
		case *ast.Ellipsis:
			out.open = true
			if d.Type != nil {
				out.add(Each, r.apart(x, d.Type, closed))
			}
		case *ast.Comprehension:
			r.comprehension(x, out, d, closed)
		case *ast.LetClause:
			r.looksAt(x, d.Expr)
		case *ast.Attribute, *ast.CommentGroup:
		default:
			r.refers, out.whole = true, true
		}
	}
	out.closed = out.closed && !out.open
	out.whole = out.whole || r.rooted && out.open && out.embeds // the embedded type has become open
	return out.typePart
}

// comprehension adds what a comprehension in a literal struct may add.
func (r *typeReader) comprehension(x *Index, out *structPart, c *ast.Comprehension, closed bool) {
	for _, clause := range c.Clauses {
		r.looksAt(x, clause)
	}
	out.embed(r.of(x, c.Value, closed), false)
	if c.Fallback != nil {
		out.embed(r.apart(x, c.Fallback.Body, closed), false)
	}
}

// A structPart is what a literal struct looks at, while its declarations are read.
type structPart struct {
	*typePart

	// closes is true if the struct is in a definition, open if something opens it, and embeds if it embeds more than
	// literal structs.
	closes, open, embeds bool
}

// embed adds what an embedded type looks at. It closes the struct if it is certain to be there.
func (s *structPart) embed(part *typePart, certain bool) {
	if part.scalar && len(part.fields) == 0 && !part.whole {
		return
	}
	s.open = s.open || s.closes && !part.closed
	joined := joinedParts(s.typePart, part, unified)
	joined.closed, joined.scalar = s.closed || certain && part.closed, false
	s.typePart = joined
}

// field adds what a field of a literal struct looks at. Hidden fields and definitions are not part of a
// value from outside.
func (r *typeReader) field(x *Index, out *typePart, f *ast.Field, closed bool) {
	name, literal := literalLabel(f.Label)
	_, aliased := f.Label.(*ast.Alias)
	r.refers = r.refers || aliased || f.Alias != nil
	switch {
	case kindOf(f) == pattern:
		r.looksAt(x, f.Label)
		out.add(Each, r.apart(x, f.Value, closed))
	case !literal:
		r.looksAt(x, f.Label)
		r.looksAt(x, f.Value)
		out.whole = true
	case isLabelIdent(f.Label) && !isRegular(name):
		r.looksAt(x, f.Value)
	default:
		out.add(name, r.of(x, f.Value, closed))
	}
}

// isLabelIdent reports whether a label is an identifier, and not a string: only those are hidden or definitions.
func isLabelIdent(l ast.Node) bool {
	_, ok := unaliased(l).(*ast.Ident)
	return ok
}

// scalarNames are the names of CUE for kinds of scalars.
var scalarNames = []string{
	"bool", "string", "bytes", "int", "float", "number", "uint", "rune", "float32", "float64",
	"int8", "int16", "int32", "int64", "int128", "uint8", "uint16", "uint32", "uint64", "uint128",
}

// byName returns what a type looks at that is given by name.
func (r *typeReader) byName(x *Index, e ast.Expr) *typePart {
	switch name, id := "", e; id := id.(type) {
	case *ast.Ident:
		name = id.Name
		switch {
		case name == "_":
			return &typePart{}
		case x.isScalarName(id):
			return &typePart{scalar: true, closed: true}
		}
		if let, ok := id.Node.(*ast.LetClause); ok {
			return r.declared(x, []Member{{value: let.Expr}}, false)
		}
		if atRoot(id) && !isRegular(id.Name) && fieldName(id) == id.Name {
			return r.declared(x, x.fields[id.Name], isDefinition(id.Name))
		}
	case *ast.SelectorExpr:
		if in, name := x.selected(id); in != nil {
			return r.declared(in, in.fields[name], isDefinition(name))
		}
	}
	r.looksAt(x, e)
	return &typePart{whole: true}
}

// declared returns what a type looks at that is declared somewhere else, perhaps in several places.
func (r *typeReader) declared(x *Index, at []Member, closed bool) *typePart {
	if len(at) == 0 {
		return &typePart{whole: true}
	}
	if r.within == nil {
		r.within = map[ast.Node]bool{}
	}
	var out *typePart
	for _, m := range at {
		if m.value == nil || r.within[m.value] {
			return &typePart{whole: true} // it refers to itself
		}
		r.refers = r.refers || m.field != nil && (m.field.Alias != nil || m.field.Label != unaliased(m.field.Label))
		r.within[m.value] = true
		part := *r.apart(x, m.value, closed)
		delete(r.within, m.value)
		if len(m.guards) > 0 {
			part.closed = part.closed && part.scalar // it may be absent
		}
		out = mergedParts(out, &part, unified)
	}
	return out
}

// looksAt notes whether an expression refers to more than definitions: then it may look at any part of the value.
func (r *typeReader) looksAt(x *Index, n ast.Node) {
	if n == nil || r.rooted {
		return
	}
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if _, literal := literalLabel(n.Label); !literal {
				r.looksAt(x, n.Label)
			}
			r.refers = r.refers || n.Alias != nil || n.Label != unaliased(n.Label)
			r.looksAt(x, n.Value)
			return false
		case *ast.SelectorExpr:
			if importedPath(n.X) != "" {
				return false
			}
		case *ast.Ident:
			if n.Name != "_" && !x.isScalarName(n) && importedPath(n) == "" {
				r.refers = true
			}
		}
		return !r.refers
	}, nil)
}

// isScalarName reports whether a name is one of CUE for a kind of scalars, and not a field of the package.
func (x *names) isScalarName(id *ast.Ident) bool {
	return id.Node == nil && slices.Contains(scalarNames, id.Name) && len(x.fields[id.Name]) == 0
}

// isDefinition reports whether a name is that of a definition, hidden or not.
func isDefinition(name string) bool {
	return len(name) > 0 && name[0] == '#' || len(name) > 1 && name[:2] == "_#"
}
