package syntax

import (
	"slices"
	"strconv"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// What is embedded is written elsewhere: in another field, perhaps of another file,
// or in another package. What the text of this package shows of it is looked up here,
// for edges and for the author's order. The rest makes the index opaque.

// addRoot records a declaration at the root, and those that an embedding brings there.
func (x *Index) addRoot(m Member, depth int) {
	switch {
	case m.name != "":
		x.fields[m.name] = append(x.fields[m.name], m)
	case m.kind == embedded && !x.isContract(m.value):
		x.opaque = true
		at := x.standsFor(m.value, depth)
		x.foreign = x.foreign || len(at) == 0
		for _, a := range at {
			x.addPaths(a.value, nil)
		}
		for _, d := range x.behind(m, depth) {
			x.addRoot(d, depth+1)
		}
	}
}

// isContract reports whether an embedding is that of the contract, which brings no
// components.
func (x *Index) isContract(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	if !ok {
		return false
	}
	spec, ok := id.Node.(*ast.ImportSpec)
	if !ok {
		return false
	}
	path, err := strconv.Unquote(spec.Path.Value)
	return err == nil && path == ContractPath
}

// behind returns the members that an embedding brings, as far as the text of the
// package shows them, with the guards of the embedding.
func (x *Index) behind(m Member, depth int) []Member {
	var out []Member
	for _, at := range x.standsFor(m.value, depth) {
		eachMember(at.value, slices.Concat(m.guards, at.guards), func(d Member) { out = append(out, d) })
	}
	return out
}

// standsFor returns what an expression may stand for in the text of the package. Where
// data selects it, that is everything that could be selected.
func (x *Index) standsFor(e ast.Expr, depth int) []Member {
	if depth > maxAliases {
		return nil
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return x.standsFor(e.X, depth)
	case *ast.Ident:
		return x.declared(e)
	case *ast.SelectorExpr:
		name, _ := literalLabel(e.Sel)
		return x.below(e.X, depth, func(d Member) bool { return d.name == name })
	case *ast.IndexExpr:
		lit, ok := e.Index.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return x.below(e.X, depth, func(Member) bool { return true })
		}
		name, _ := literalLabel(lit)
		return x.below(e.X, depth, func(d Member) bool { return d.name == name })
	}
	return nil
}

// below returns those members of what an expression stands for that are selected.
func (x *Index) below(e ast.Expr, depth int, selected func(Member) bool) []Member {
	var out []Member
	for _, at := range x.standsFor(e, depth+1) {
		if list, ok := at.value.(*ast.ListLit); ok {
			for _, v := range list.Elts {
				out = append(out, Member{value: v, guards: at.guards})
			}
			continue
		}
		eachMember(at.value, at.guards, func(d Member) {
			if selected(d) {
				out = append(out, d)
			}
		})
	}
	return out
}
