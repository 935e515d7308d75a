package program

import (
	"cmp"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// A Reference is a chain of selections in a package that starts at one of the
// fields that the engine fills or orders by: components, live, cr or inputs.
type Reference struct {
	// Path is the chain, such as live, web, deployment, status. It ends before
	// the first selection that is not a literal.
	Path     []string
	Position Position
}

// String returns the chain in CUE's notation.
func (r Reference) String() string {
	sels := make([]cue.Selector, len(r.Path))
	for i, name := range r.Path {
		sels[i] = label(name)
	}
	return cue.MakePath(sels...).String()
}

// label returns the selector of a name in the text.
func label(name string) cue.Selector {
	if sels := cue.ParsePath(name).Selectors(); !isRegular(name) && len(sels) == 1 {
		return sels[0] // hidden, or a definition
	}
	return cue.Str(name)
}

// nameOf returns the name in a selector. One that is no name, as of a text that is no
// path, is returned as it is written.
func nameOf(sel cue.Selector) string {
	if sel.LabelType() == cue.StringLabel {
		return sel.Unquoted()
	}
	return sel.String()
}

// roots are the fields from which references are recorded.
var roots = []string{"components", "live", "cr", "inputs"}

// references collects the references in a piece of a package.
type references struct {
	index *index
	// follow says whether names of other root fields are followed to what they
	// stand for, so that an alias hides nothing.
	follow bool
	// parameters says whether a name that is hidden, or a definition, is also followed to
	// whatever has that label anywhere: a template is given its parameters by those.
	parameters bool
	// skip says what is left out; nil leaves nothing out.
	skip      func(ast.Node) bool
	found     []Reference
	following map[ast.Node]bool
}

// References returns every reference that the package makes, by position.
func (p *Program) References() []Reference { return slices.Clone(p.index.references) }

func (x *index) allReferences(files []*ast.File) []Reference {
	r := &references{index: x, following: map[ast.Node]bool{}}
	for _, f := range files {
		for _, d := range f.Decls {
			if _, ok := d.(*ast.ImportDecl); !ok {
				r.walk(d)
			}
		}
	}
	slices.SortStableFunc(r.found, func(a, b Reference) int { return comparePositions(a.Position, b.Position) })
	return slices.CompactFunc(r.found, func(a, b Reference) bool {
		return a.Position == b.Position && slices.Equal(a.Path, b.Path)
	})
}

// referenceTo returns the reference at a position that selects a name, up to that
// name.
func (x *index) referenceTo(name string, at Position) (Reference, bool) {
	for _, r := range x.references {
		if i := slices.Index(r.Path, name); r.Position == at && i > 0 {
			return Reference{Path: r.Path[:i+1], Position: at}, true
		}
	}
	return Reference{}, false
}

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

// derive returns the edges from a component to those whose outputs or live
// objects its bodies refer to, in the order of the text.
func (x *index) derive(component string, bodies []member) []Edge {
	r := &references{index: x, follow: true, following: map[ast.Node]bool{}}
	for _, b := range bodies {
		r.member(b)
	}
	var out []Edge
	for _, ref := range r.found {
		to, ok := ref.dependency()
		if !ok || to == component || slices.ContainsFunc(out, func(e Edge) bool { return e.To == to }) {
			continue
		}
		out = append(out, Edge{To: to, Until: UntilVerified, Origin: Derived, Optional: true, Position: ref.Position})
	}
	return out
}

// dependency returns the component that a reference depends on.
func (r Reference) dependency() (string, bool) {
	switch {
	case len(r.Path) >= 2 && r.Path[0] == "live":
		return r.Path[1], true
	case len(r.Path) >= 3 && r.Path[0] == "components" && r.Path[2] == "outputs":
		return r.Path[1], true
	}
	return "", false
}

// member walks a member with what guards it.
func (r *references) member(m member) {
	for _, g := range m.guards {
		r.walk(g)
	}
	if m.field != nil {
		if _, literal := literalLabel(m.field.Label); !literal {
			r.walk(m.field.Label)
		}
	}
	if m.value != nil {
		r.walk(m.value)
	}
}

func (r *references) walk(n ast.Node) {
	ast.Walk(n, func(n ast.Node) bool {
		if r.skip != nil && r.skip(n) {
			return false
		}
		switch n := n.(type) {
		case *ast.Field:
			// A literal label is a name, not a reference.
			r.member(member{field: n, value: n.Value})
			return false
		case ast.Expr:
			return !r.chain(n)
		}
		return true
	}, nil)
}

// chain records a chain of selections, follows the name at its start, and reports
// whether it was one.
func (r *references) chain(e ast.Expr) bool {
	root, sels, _ := flatten(e)
	if root == nil {
		return false
	}
	r.brackets(e)
	if path, ok := r.index.pathOf(root, 0); ok {
		if !r.follow && len(sels) == 0 && !slices.Contains(roots, fieldName(root)) {
			return true // another name, recorded where it is written
		}
		path = slices.Concat(path, sels)
		r.found = append(r.found, Reference{Path: path, Position: positionAt(root.Pos())})
		if r.follow && len(path) > 1 && path[0] == "components" {
			r.declarations(r.index.fields["components"], path[1:])
		}
		return true
	}
	if r.follow {
		r.declarations(r.index.declared(root), sels)
	}
	if name := fieldName(root); r.parameters && !isRegular(name) {
		r.declarations(r.index.labelled[name], sels)
	}
	return true
}

// declared returns what an identifier that leads to none of the roots stands for.
func (x *index) declared(id *ast.Ident) []member {
	switch n := id.Node.(type) {
	case *ast.LetClause:
		return []member{{value: n.Expr}}
	case *ast.Alias:
		return []member{{value: n.Expr}}
	case *ast.ImportSpec:
		return nil
	}
	if atRoot(id) {
		return x.fields[fieldName(id)]
	}
	if _, ok := id.Scope.(*ast.StructLit); !ok {
		return nil // a variable of a comprehension, which is walked itself
	}
	switch n := id.Node.(type) {
	case *ast.Field:
		return []member{{field: n, value: n.Value}}
	case ast.Expr:
		return []member{{value: n}}
	}
	return nil
}

// brackets walks what stands in the brackets of a chain.
func (r *references) brackets(e ast.Expr) {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			r.walk(x.Index)
			e = x.X
		default:
			return
		}
	}
}

// declarations walks what a path below some declarations stands for. It walks no
// more than the path leads to where the text says that: a reference to one field
// of a struct is no reference to what its other fields rest on.
func (r *references) declarations(at []member, path []string) {
	for len(path) > 0 {
		next, exact := step(at, path[0])
		if !exact {
			break
		}
		at, path = next, path[1:]
	}
	for _, m := range at {
		if m.value == nil || r.following[m.value] {
			continue
		}
		r.following[m.value] = true
		r.member(m)
	}
}

// step returns the declarations of a name below others, and whether the text
// shows all of them.
func step(at []member, name string) (next []member, exact bool) {
	exact = true
	for _, m := range at {
		eachMember(m.value, m.guards, func(d member) {
			switch {
			case d.name == name:
				next = append(next, d)
			case d.kind != named:
				exact = false
			}
		})
	}
	return next, exact && len(next) > 0
}

// maxAliases bounds how many names are followed one after the other, as a guard
// against names that stand for each other.
const maxAliases = 16

// pathOf returns the path that an identifier stands for, if it leads to one of
// the roots: by its own name, as the name of a field beside or around the place,
// or as a name for another chain.
func (x *index) pathOf(id *ast.Ident, depth int) ([]string, bool) {
	if depth > maxAliases {
		return nil, false
	}
	if name := fieldName(id); atRoot(id) && slices.Contains(roots, name) {
		return []string{name}, true
	}
	if s, ok := id.Scope.(*ast.StructLit); ok {
		if path, ok := x.paths[s]; ok && isField(id.Node) {
			path = append(slices.Clone(path), fieldName(id))
			if slices.Contains(roots, path[0]) {
				return path, true
			}
		}
	}
	for _, m := range x.declared(id) {
		root, sels, complete := flatten(m.value)
		if root == nil || root == id || !complete {
			continue
		}
		if path, ok := x.pathOf(root, depth+1); ok {
			return append(path, sels...), true
		}
	}
	return nil, false
}

// isField reports whether an identifier that is resolved to a node refers to a field.
func isField(n ast.Node) bool {
	switch n.(type) {
	case *ast.LetClause, *ast.Alias, *ast.ImportSpec:
		return false
	}
	return true
}

// fieldName returns the name of the field that an identifier refers to: its own,
// or the one behind an alias.
func fieldName(id *ast.Ident) string {
	if f, ok := id.Node.(*ast.Field); ok {
		if name, ok := literalLabel(f.Label); ok {
			return name
		}
	}
	return id.Name
}

// atRoot reports whether an identifier refers to the package's root. The parser
// resolves names within one file only; those of other files stay open.
func atRoot(id *ast.Ident) bool {
	switch id.Node.(type) {
	case *ast.ImportSpec, *ast.LetClause:
		return false
	}
	if id.Node == nil || id.Scope == nil {
		return true
	}
	_, file := id.Scope.(*ast.File)
	return file
}

// flatten returns the identifier at which a chain starts and the literal
// selections that follow, up to the first that is not literal, and whether those
// are all.
func flatten(e ast.Expr) (root *ast.Ident, path []string, complete bool) {
	switch e := e.(type) {
	case *ast.Ident:
		return e, nil, true
	case *ast.ParenExpr:
		return flatten(e.X)
	case *ast.SelectorExpr:
		root, path, complete = flatten(e.X)
		name, ok := literalLabel(e.Sel)
		if !complete || !ok {
			return root, path, false
		}
		return root, append(path, name), true
	case *ast.IndexExpr:
		root, path, complete = flatten(e.X)
		lit, ok := e.Index.(*ast.BasicLit)
		if !complete || !ok || lit.Kind != token.STRING {
			return root, path, false
		}
		name, err := literal.Unquote(lit.Value)
		if err != nil {
			return root, path, false
		}
		return root, append(path, name), true
	}
	return nil, nil, false
}
