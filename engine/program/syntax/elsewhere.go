package syntax

import (
	"slices"
	"strconv"

	"cuelang.org/go/cue/ast"
)

// What is embedded is written elsewhere: in another field, perhaps of another file,
// or in another package. What the text of this package shows of it is looked up here,
// for edges and for the author's order. The rest makes the index opaque.

// addRoot records a declaration at the root, and those that an embedding brings there.
func (x *reader) addRoot(m Member, depth int) {
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
	c := chainOf(e)
	if c.root() == nil || depth > maxAliases {
		return nil
	}
	out := x.declared(c.root())
	for _, name := range c.names() {
		within := x.below(out, name, depth+1)
		out = slices.Concat(within.named, within.others)
	}
	return out
}

// A lookup is what the text has of a name below some members.
type lookup struct {
	// named are the fields of that literal name. others are those that may have the name:
	// patterns, computed names and the elements of a list.
	named, others []Member
	// hidden are the embeddings of which the text of the package shows nothing.
	hidden []Member
	// names are the literal names of all regular fields; they are open when there are
	// patterns or computed names beside them.
	names []string
	open  bool
}

// below returns what the text has of a name, or of Each, below some members, also in what
// they embed.
func (x *Index) below(at []Member, name string, depth int) lookup {
	var out lookup
	var look func(m Member, depth int)
	look = func(m Member, depth int) {
		switch {
		case m.kind == embedded:
			shown := x.standsFor(m.value, depth)
			if len(shown) == 0 {
				out.hidden = append(out.hidden, m)
			}
			for _, at := range shown {
				eachMember(at.value, slices.Concat(m.guards, at.guards), func(d Member) { look(d, depth+1) })
			}
		case m.kind == named && isRegular(m.name) && !slices.Contains(out.names, m.name):
			out.names = append(out.names, m.name)
			fallthrough
		default:
			out.open = out.open || m.kind != named
			if !m.mayBe(name) {
				return
			}
			if m.kind == named {
				out.named = append(out.named, m)
			} else {
				out.others = append(out.others, m)
			}
		}
	}
	for _, m := range at {
		if list, ok := m.value.(*ast.ListLit); ok && name == Each {
			for _, v := range list.Elts {
				out.others = append(out.others, Member{value: v, guards: m.guards})
			}
			continue
		}
		eachMember(m.value, m.guards, func(d Member) { look(d, depth) })
	}
	return out
}
