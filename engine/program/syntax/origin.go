package syntax

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// An origin is what an expression stands for, as far as the text tells: a field of the spec or
// of the configuration, something that is written out, or what a function makes.
type origin struct {
	// These are of a field: its schema and path, and in how many lists and maps it is.
	Given
	path   string
	within int
	// expr is what is written out.
	expr ast.Expr
	// made is how large what a function makes is, and each of its elements.
	made *Amount
	// alternative says that it is this or something else, and not all at once.
	alternative bool
}

// origins returns what an expression stands for.
func (s *sizes) origins(e ast.Expr) []origin {
	if found, done := s.found[e]; done || e == nil {
		return found // while it is looked for, what refers to itself stands for nothing
	}
	s.found[e] = nil
	s.found[e] = distinct(s.look(e))
	return s.found[e]
}

// distinct returns each origin once: names that double each other would otherwise stand for
// more than there is memory for.
func distinct(of []origin) []origin {
	type identity struct {
		expr        ast.Expr
		path        string
		made        *Amount
		alternative bool
	}
	seen := map[identity]bool{}
	return slices.DeleteFunc(slices.Clone(of), func(o origin) bool {
		id := identity{o.expr, o.path, o.made, o.alternative}
		before := seen[id]
		seen[id] = true
		return before
	})
}

func (s *sizes) look(e ast.Expr) []origin {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.origins(e.X)
	case *ast.Alias:
		return s.origins(e.Expr)
	case *ast.Ident:
		return s.ident(e)
	case *ast.SelectorExpr:
		name, ok := literalLabel(e.Sel)
		if !ok {
			return nil
		}
		return s.fieldsOf(s.origins(e.X), name)
	case *ast.IndexExpr:
		if lit, ok := e.Index.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			return s.fieldsOf(s.origins(e.X), unquoted(lit))
		}
		return anyOf(s.elements(s.origins(e.X)))
	case *ast.BinaryExpr:
		switch e.Op {
		case token.AND:
			return slices.Concat(s.origins(e.X), s.origins(e.Y))
		case token.OR:
			return anyOf(slices.Concat(s.origins(e.X), s.origins(e.Y)))
		}
	case *ast.UnaryExpr:
		if e.Op == token.MUL {
			return s.origins(e.X)
		}
	case *ast.CallExpr:
		return s.called(e)
	}
	return []origin{{expr: e}}
}

// anyOf returns origins of which only one counts.
func anyOf(of []origin) []origin {
	out := slices.Clone(of)
	for i := range out {
		out[i].alternative = true
	}
	return out
}

// ident returns what a name stands for.
func (s *sizes) ident(id *ast.Ident) []origin {
	switch scope := id.Scope.(type) {
	case *ast.ForClause:
		if id.Node == ast.Node(scope.Value) {
			return anyOf(s.elements(s.origins(scope.Source)))
		}
		return nil // a key
	case *ast.LetClause:
		return s.origins(scope.Expr)
	}
	if let, ok := id.Node.(*ast.LetClause); ok {
		return s.origins(let.Expr)
	}
	if root, ok := s.roots[fieldName(id)]; ok && atRoot(id) {
		return []origin{{Given: root, path: fieldName(id)}}
	}
	var out []origin
	for _, m := range s.index.declared(id) {
		out = append(out, s.origins(m.value)...)
	}
	if name := fieldName(id); !isRegular(name) && !atRoot(id) {
		// A template is given its parameters where it is used.
		for _, m := range s.index.labelled[name] {
			out = append(out, anyOf(s.origins(m.value))...)
		}
	}
	return out
}

// fieldsOf returns what a field of some origins stands for.
func (s *sizes) fieldsOf(of []origin, name string) []origin {
	var out []origin
	for _, o := range of {
		switch {
		case o.made != nil:
			out = append(out, o)
		case o.expr != nil:
			out = append(out, s.fieldOf(o.expr, name)...)
		default:
			out = append(out, o.field(name)...)
		}
	}
	return out
}

// fieldOf returns what a field of what is written out stands for. A struct may embed itself, by
// whatever way, so what it is made of is looked at once for each name.
func (s *sizes) fieldOf(e ast.Expr, name string) []origin {
	at := part{of: e, name: name}
	if found, done := s.parts[at]; done {
		return found
	}
	s.parts[at] = nil
	var out []origin
	eachMember(e, nil, func(m Member) {
		switch {
		case m.kind == named && m.name == name:
			out = append(out, s.origins(m.value)...)
		case m.kind == dynamic, m.kind == pattern:
			out = append(out, anyOf(s.origins(m.value))...)
		case m.kind == embedded && m.value != e:
			out = append(out, s.fieldsOf(s.origins(m.value), name)...)
		}
	})
	s.parts[at] = distinct(out)
	return s.parts[at]
}

// field returns a field of what a user gives.
func (o origin) field(name string) []origin {
	if o.path == "cr" && name != "spec" || !isRegular(name) {
		return nil // what Kubernetes has limits for itself
	}
	for _, sel := range []cue.Selector{cue.Str(name), cue.Str(name).Optional()} {
		if v := o.Schema.LookupPath(cue.MakePath(sel)); v.Exists() {
			return []origin{{Given: Given{v, o.Limits}, path: o.path + "." + cue.Str(name).String(), within: o.within, alternative: o.alternative}}
		}
	}
	if v := o.Schema.LookupPath(cue.MakePath(cue.AnyString)); v.Exists() {
		return []origin{{Given: Given{v, o.Limits}, path: o.path + "[string]", within: o.within + 1, alternative: o.alternative}}
	}
	return nil
}

// elements returns what the elements of some origins stand for.
func (s *sizes) elements(of []origin) []origin {
	var out []origin
	for _, o := range of {
		switch {
		case o.made != nil:
			out = append(out, o)
		case o.expr == nil:
			out = append(out, o.elements()...)
		default:
			out = append(out, s.elementsOf(o.expr)...)
		}
	}
	return out
}

// elementsOf returns what the elements of what is written out stand for.
func (s *sizes) elementsOf(e ast.Expr) []origin {
	at := part{of: e, all: true}
	if found, done := s.parts[at]; done {
		return found
	}
	s.parts[at] = nil
	var out []origin
	switch e := e.(type) {
	case *ast.ListLit:
		for _, elt := range e.Elts {
			switch elt := elt.(type) {
			case *ast.Comprehension:
				out = append(out, s.plain(elt.Value)...)
			case *ast.Ellipsis:
				out = append(out, s.origins(elt.Type)...)
			default:
				out = append(out, s.plain(elt)...)
			}
		}
	case *ast.StructLit:
		eachMember(e, nil, func(m Member) {
			switch {
			case m.kind == embedded && m.value != ast.Expr(e):
				out = append(out, s.elements(s.origins(m.value))...)
			case m.name == "" || isRegular(m.name):
				out = append(out, s.origins(m.value)...)
			}
		})
	}
	s.parts[at] = distinct(anyOf(out))
	return s.parts[at]
}

// plain returns what an element stands for, of which {x} is the same as x.
func (s *sizes) plain(e ast.Expr) []origin {
	if l, ok := e.(*ast.StructLit); ok && len(l.Elts) == 1 {
		if only, ok := l.Elts[0].(*ast.EmbedDecl); ok {
			return s.origins(only.Expr)
		}
	}
	return s.origins(e)
}

// elements returns the elements of what a user gives.
func (o origin) elements() []origin {
	below := func(v cue.Value, label string, within int) origin {
		return origin{Given: Given{v, o.Limits}, path: o.path + label, within: o.within + within, alternative: true}
	}
	var out []origin
	if v := o.Schema.LookupPath(cue.MakePath(cue.AnyIndex)); v.Exists() {
		out = append(out, below(v, "[_]", 1))
	}
	if v := o.Schema.LookupPath(cue.MakePath(cue.AnyString)); v.Exists() {
		out = append(out, below(v, "[string]", 1))
	}
	if len(out) > 0 || o.Schema.IncompleteKind()&cue.StructKind == 0 {
		return out
	}
	fields, err := o.Schema.Fields(cue.Optional(true))
	for err == nil && fields.Next() {
		out = append(out, below(fields.Value(), "."+fields.Selector().String(), 0))
	}
	return out
}
