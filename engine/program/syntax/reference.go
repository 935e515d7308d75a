package syntax

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

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

func (x *Index) allReferences(files []*ast.File) []Reference {
	r := newReferences(x)
	for _, f := range files {
		for _, d := range f.Decls {
			if _, ok := d.(*ast.ImportDecl); !ok {
				r.walk(d)
			}
		}
	}
	out := make([]Reference, len(r.found))
	for i, f := range r.found {
		out[i] = f.Reference
		x.addSelections(f)
	}
	slices.SortStableFunc(out, func(a, b Reference) int { return fault.Compare(a.Position, b.Position) })
	return slices.CompactFunc(out, func(a, b Reference) bool {
		return a.Is(b)
	})
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

// maxAliases bounds how many names are followed one after the other, as a guard
// against names that stand for each other.
const maxAliases = 16

// pathOf returns the path that an identifier stands for, if it leads to one of
// the roots: by its own name, as the name of a field beside or around the place,
// or as a name for another chain.
func (x *Index) pathOf(id *ast.Ident, depth int) ([]string, bool) {
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

// A Selection is a place in the text at which a name is selected: the reference that it is
// part of, and how long that is with the name.
type Selection struct {
	Reference

	Length int
}

// SelectionsAt returns the names that are selected at a place.
func (x *Index) SelectionsAt(at fault.Origin) []Selection {
	if at == (fault.Origin{}) {
		return nil
	}
	return x.selections[at]
}

// addSelections records where each name of a reference is selected.
func (x *Index) addSelections(f found) {
	root, names := selectors(f.chain)
	names = names[:f.literal]
	from := len(f.Path) - len(names)
	for i, n := range append([]ast.Node{root}, names...) {
		at := fault.OriginOf(n.Pos())
		x.selections[at] = append(x.selections[at], Selection{f.Reference, max(from+i, 1)})
	}
}

// selectors returns the name at which a chain starts, and what is selected behind it, as it
// is written.
func selectors(e ast.Expr) (root ast.Node, names []ast.Node) {
	var all []ast.Node
	for {
		switch n := e.(type) {
		case *ast.ParenExpr:
			e = n.X
		case *ast.SelectorExpr:
			all, e = append(all, n.Sel), n.X
		case *ast.IndexExpr:
			all, e = append(all, n.Index), n.X
		default:
			slices.Reverse(all)
			return e, all
		}
	}
}

// Source returns an expression as the author wrote it, on one line.
func Source(e ast.Expr) string {
	b, err := format.Node(e)
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b)), " ")
}
