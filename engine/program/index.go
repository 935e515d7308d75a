package program

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// An index is what the text of a package says before any evaluation: where its
// root fields are written, and which references each component makes. Evaluation
// cannot tell that: an expression that waits for a live object has no value, and
// a value does not know the file and line of what it refers to.
type index struct {
	root Position
	// fields holds the declarations of each root field, over all files.
	fields map[string][]*ast.Field
	// lets holds the declarations of root-level let clauses.
	lets map[string][]*ast.LetClause
	// components holds the references of each component that has a literal name.
	components map[string][]Reference
	// order is the author's order of the components.
	order []string
	// names are the members that are written for components, objects and outputs.
	names map[string]members
}

// A Reference is a chain of selections in a package that starts at one of the
// fields that the engine fills or orders by: components, live, cr or inputs.
type Reference struct {
	// Path is the chain, such as live, web, deployment, status. It ends before
	// the first selection that is not a literal.
	Path     []string
	Position Position
}

// String returns the chain in CUE's notation.
func (r Reference) String() string { return strings.Join(r.Path, ".") }

// members are the literal names written below a path. They are open when more may
// come from an embedding, a dynamic name or a pattern.
type members struct {
	names map[string]Position
	open  bool
}

func newIndex(files []*ast.File) *index {
	x := &index{
		fields:     map[string][]*ast.Field{},
		lets:       map[string][]*ast.LetClause{},
		components: map[string][]Reference{},
		names:      map[string]members{},
	}
	for _, f := range files {
		x.root = orFirst(x.root, Position{File: f.Filename, Line: 1})
		for _, d := range f.Decls {
			x.addRoot(d)
		}
	}
	for _, f := range x.fields["components"] {
		x.addComponents(f.Value)
	}
	return x
}

func orFirst(a, b Position) Position {
	if a != (Position{}) {
		return a
	}
	return b
}

// addRoot records a declaration at the root of a file, or in a comprehension
// there.
func (x *index) addRoot(d ast.Node) {
	switch d := d.(type) {
	case *ast.Field:
		if name, ok := literalLabel(d.Label); ok {
			x.fields[name] = append(x.fields[name], d)
		}
	case *ast.LetClause:
		x.lets[d.Ident.Name] = append(x.lets[d.Ident.Name], d)
	case *ast.Comprehension:
		if s, ok := d.Value.(*ast.StructLit); ok {
			for _, e := range s.Elts {
				x.addRoot(e)
			}
		}
	}
}

// addComponents records what is written below components.
func (x *index) addComponents(v ast.Node) {
	x.addMembers("components", v)
	eachField(v, func(component string, body ast.Expr) {
		if !slices.Contains(x.order, component) {
			x.order = append(x.order, component)
		}
		refs := &references{index: x, following: map[string]bool{}}
		refs.walk(body)
		x.components[component] = append(x.components[component], refs.found...)
		eachField(body, func(part string, value ast.Expr) {
			x.addMembers("components."+component+"."+part, value)
		})
	})
}

// addMembers records the names written directly below a path.
func (x *index) addMembers(path string, v ast.Node) {
	m, ok := x.names[path]
	if !ok {
		m.names = map[string]Position{}
	}
	eachDecl(v, func(d ast.Node) {
		switch d := d.(type) {
		case *ast.Field:
			name, literal := literalLabel(d.Label)
			if !literal {
				m.open = true
				return
			}
			if _, seen := m.names[name]; !seen {
				m.names[name] = positionAt(d.Label.Pos())
			}
		case *ast.EmbedDecl:
			m.open = true
		case ast.Expr:
			m.open = true
		}
	})
	x.names[path] = m
}

// eachField calls f for each field with a literal name directly in a value, also
// within comprehensions and unifications.
func eachField(v ast.Node, f func(name string, value ast.Expr)) {
	eachDecl(v, func(d ast.Node) {
		if field, ok := d.(*ast.Field); ok {
			if name, ok := literalLabel(field.Label); ok {
				f(name, field.Value)
			}
		}
	})
}

// eachDecl calls f for each declaration directly in a value. What is not a
// struct literal is passed as it is.
func eachDecl(v ast.Node, f func(ast.Node)) {
	switch v := v.(type) {
	case *ast.StructLit:
		for _, e := range v.Elts {
			if c, ok := e.(*ast.Comprehension); ok {
				eachDecl(c.Value, f)
				continue
			}
			f(e)
		}
	case *ast.BinaryExpr:
		if v.Op == token.AND || v.Op == token.OR {
			eachDecl(v.X, f)
			eachDecl(v.Y, f)
			return
		}
		f(v)
	case *ast.UnaryExpr:
		eachDecl(v.X, f)
	case *ast.ParenExpr:
		eachDecl(v.X, f)
	default:
		f(v)
	}
}

// literalLabel returns the name of a label that is written out.
func literalLabel(l ast.Label) (string, bool) {
	switch l := l.(type) {
	case *ast.Ident:
		return l.Name, true
	case *ast.BasicLit:
		if l.Kind == token.STRING {
			s, err := strconv.Unquote(l.Value)
			return s, err == nil
		}
	}
	return "", false
}
