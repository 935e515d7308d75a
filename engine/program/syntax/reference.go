package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"

	"operetta.dev/engine/fault"
)

// A Reference is a chain of selections in a package that starts at one of the
// fields that the engine fills or orders by: components, live, cr or inputs.
type Reference struct {
	// Path is the chain, such as live, web, deployment, status. It ends before
	// the first selection that is not a literal.
	Path     []string
	Position fault.Position
}

// String returns the chain in CUE's notation.
func (r Reference) String() string {
	sels := make([]cue.Selector, len(r.Path))
	for i, name := range r.Path {
		sels[i] = Selector(name)
	}
	return cue.MakePath(sels...).String()
}

// Selector returns the selector of a name in the text.
func Selector(name string) cue.Selector {
	if sels := cue.ParsePath(name).Selectors(); !isRegular(name) && len(sels) == 1 {
		return sels[0] // hidden, or a definition
	}
	return cue.Str(name)
}

// roots are the fields from which references are recorded.
var roots = []string{"components", "live", "cr", "inputs"}

// References returns every reference that the package makes, by position.
func (x *Index) References() []Reference { return slices.Clone(x.references) }

func (x *reader) allReferences() []Reference {
	r := newReferences(x.Index)
	for _, f := range x.files {
		for _, d := range f.Decls {
			if _, ok := d.(*ast.ImportDecl); !ok {
				r.walk(d)
			}
		}
	}
	for _, f := range r.found {
		x.addSelections(f)
	}
	x.readings = x.readingsOf(r.found)
	x.parts = x.partsOf(r.found)
	out := r.all()
	slices.SortStableFunc(out, func(a, b Reference) int { return fault.Compare(a.Position, b.Position) })
	return slices.CompactFunc(out, Reference.Is)
}

// Is reports whether two references are the same one.
func (r Reference) Is(o Reference) bool {
	return r.Position == o.Position && slices.Equal(r.Path, o.Path)
}

// Dependency returns the component that a reference depends on.
func (r Reference) Dependency() (string, bool) {
	switch {
	case len(r.Path) >= 2 && r.Path[0] == "live":
		return r.Path[1], true
	case len(r.Path) >= 3 && r.Path[0] == "components" && r.Path[2] == "outputs":
		return r.Path[1], true
	}
	return "", false
}

// Object returns the path of the object or input that a reference leads into, and the rest
// of the reference below it. A live object has the path of the component's object.
func (r Reference) Object() (of, below []string, ok bool) {
	p := r.Path
	switch {
	case len(p) > 2 && p[0] == "live":
		return []string{"components", p[1], "objects", p[2]}, p[3:], true
	case len(p) > 3 && p[0] == "components" && p[2] == "objects":
		return p[:4], p[4:], true
	case len(p) > 2 && p[0] == "inputs" && p[2] == "objects":
		return p[:2], p[min(4, len(p)):], true
	case len(p) > 2 && p[0] == "inputs" && strings.HasPrefix(p[2], "object"):
		return p[:2], p[3:], true
	}
	return nil, nil, false
}

// maxAliases bounds how many names are followed one after the other, as a guard
// against names that stand for each other.
const maxAliases = 16

// pathOf returns the path that an identifier stands for, if it leads to one of
// the roots: by its own name, as the name of a field beside or around the place,
// or as a name for another chain.
func (x *names) pathOf(id *ast.Ident, depth int) ([]string, bool) {
	if path, ok := x.rooted(id); ok {
		return path, true
	}
	for _, m := range x.declared(id) {
		if path, ok := x.pathThrough(id, m, depth); ok {
			return path, true
		}
	}
	return nil, false
}

// rooted returns the path of an identifier that is one of the roots by its own name, or
// the name of a field in one of them.
func (x *names) rooted(id *ast.Ident) ([]string, bool) {
	if name := fieldName(id); atRoot(id) && (slices.Contains(roots, name)) {
		return []string{name}, true
	}
	if s, ok := id.Scope.(*ast.StructLit); ok {
		if path, ok := x.paths[s]; ok && isField(id.Node) {
			path = append(slices.Clone(path), fieldName(id))
			return path, slices.Contains(roots, path[0])
		}
	}
	return nil, false
}

// pathThrough returns the path that an identifier stands for by one of its declarations,
// if that is another name for one.
func (x *names) pathThrough(id *ast.Ident, m Member, depth int) ([]string, bool) {
	c := chainOf(m.value)
	names, all := c.literal()
	if depth > maxAliases || c.root() == nil || c.root() == id || !all {
		return nil, false
	}
	path, ok := x.pathOf(c.root(), depth+1)
	return append(path, names...), ok
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

// A Selection is a place in the text at which a name is selected: the reference that it is
// part of, and how long that is with the name.
type Selection struct {
	Reference

	Length int
}

// SelectionsAt returns the names that are selected at a place.
func (x *Index) SelectionsAt(at fault.TokenPosition) []Selection {
	if at == (fault.TokenPosition{}) {
		return nil
	}
	return x.selections[at]
}

// addSelections records where each name of a reference is selected.
func (x *reader) addSelections(f found) {
	from := len(f.Path) - f.literal
	add := func(n ast.Node, length int) {
		if at := fault.TokenPositionOf(n.Pos()); at != (fault.TokenPosition{}) {
			x.selections[at] = append(x.selections[at], Selection{f.Reference, max(length, 1)})
		}
	}
	add(f.chain.base, from)
	for i, s := range f.chain.steps[:f.literal] {
		add(s.node, from+i+1)
	}
	x.addComputedSelections(f)
}

// Source returns an expression as the author wrote it, on one line.
func Source(e ast.Expr) string {
	b, err := format.Node(e)
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b)), " ")
}
