package program

import (
	"maps"
	"slices"
	"strconv"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// roots are the fields from which references are recorded.
var roots = []string{"components", "live", "cr", "inputs"}

// references collects the references in a piece of a package. It follows names of
// other root fields, definitions and lets, so that an alias hides nothing.
type references struct {
	index     *index
	found     []Reference
	following map[string]bool
}

func (r *references) walk(n ast.Node) {
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			// A label is a name, not a reference.
			if _, literal := literalLabel(n.Label); !literal {
				r.walk(n.Label)
			}
			if n.Value != nil {
				r.walk(n.Value)
			}
			return false
		case *ast.SelectorExpr, *ast.IndexExpr:
			return !r.chain(n.(ast.Expr))
		case *ast.Ident:
			r.ident(n)
		}
		return true
	}, nil)
}

// chain records a chain of selections and reports whether it was one.
func (r *references) chain(e ast.Expr) bool {
	root, path := flatten(e)
	if root == nil {
		return false
	}
	r.indexes(e)
	if !atRoot(root) || !slices.Contains(roots, root.Name) {
		r.ident(root)
		return true
	}
	r.found = append(r.found, Reference{Path: append([]string{root.Name}, path...), Position: positionAt(root.Pos())})
	return true
}

// indexes walks what stands in the brackets of a chain.
func (r *references) indexes(e ast.Expr) {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			r.walk(x.Index)
			e = x.X
		default:
			return
		}
	}
}

// ident follows the name of another root field or let to what it stands for.
func (r *references) ident(id *ast.Ident) {
	if !atRoot(id) || slices.Contains(roots, id.Name) || r.following[id.Name] {
		return
	}
	r.following[id.Name] = true
	for _, f := range r.index.fields[id.Name] {
		r.walk(f.Value)
	}
	for _, l := range r.index.lets[id.Name] {
		r.walk(l.Expr)
	}
}

// atRoot reports whether an identifier refers to the package's root. The parser
// resolves names within one file only; those of other files stay open.
func atRoot(id *ast.Ident) bool {
	if id.Node == nil || id.Scope == nil {
		return true
	}
	_, file := id.Scope.(*ast.File)
	return file
}

// flatten returns the identifier at which a chain starts and the literal
// selections that follow, up to the first that is not literal.
func flatten(e ast.Expr) (*ast.Ident, []string) {
	switch e := e.(type) {
	case *ast.Ident:
		return e, nil
	case *ast.ParenExpr:
		return flatten(e.X)
	case *ast.SelectorExpr:
		root, path := flatten(e.X)
		name, ok := literalLabel(e.Sel)
		return extend(root, path, selections(e.X), name, ok)
	case *ast.IndexExpr:
		root, path := flatten(e.X)
		lit, isLit := e.Index.(*ast.BasicLit)
		if !isLit || lit.Kind != token.STRING {
			return root, path
		}
		name, err := strconv.Unquote(lit.Value)
		return extend(root, path, selections(e.X), name, err == nil)
	}
	return nil, nil
}

// extend adds a literal selection, unless one before it was not literal.
func extend(root *ast.Ident, path []string, before int, name string, literal bool) (*ast.Ident, []string) {
	if !literal || len(path) < before {
		return root, path
	}
	return root, append(path, name)
}

// selections returns how many selections an expression is made of.
func selections(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return 1 + selections(e.X)
	case *ast.IndexExpr:
		return 1 + selections(e.X)
	case *ast.ParenExpr:
		return selections(e.X)
	}
	return 0
}

// References returns every reference that the package makes from its root fields,
// in the order of the files.
func (p *Program) References() []Reference {
	var out []Reference
	for _, name := range slices.Sorted(maps.Keys(p.index.fields)) {
		for _, f := range p.index.fields[name] {
			// Without following: each root field is walked by itself.
			refs := &references{index: &index{}, following: map[string]bool{}}
			refs.walk(f.Value)
			out = append(out, refs.found...)
		}
	}
	return out
}

// derivedEdges returns the components whose outputs or live objects a component
// refers to, in the order of the text.
func (x *index) derivedEdges(component string) []Edge {
	var out []Edge
	for _, r := range x.components[component] {
		to, ok := r.dependency()
		if !ok || to == component || slices.ContainsFunc(out, func(e Edge) bool { return e.To == to }) {
			continue
		}
		out = append(out, Edge{To: to, Until: UntilVerified, Origin: Derived, Optional: true, Position: r.Position})
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
