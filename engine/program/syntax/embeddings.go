package syntax

import (
	"slices"

	"cuelang.org/go/cue/ast"
)

// An embedded value is written elsewhere: in another field, perhaps of another file, or in another
// package. This file looks up those members of it that the text of this package shows, for edges
// and for the author's order. Other members make the index opaque.

// addRoot records a declaration at the root, and the members of an embedding at the root.
func (x *reader) addRoot(m Member, depth int) {
	switch {
	case m.name != "":
		x.fields[m.name] = append(x.fields[m.name], m)
	case m.kind == embedded && !isContract(m.value):
		x.opaque = true
		at := x.possibleMembers(m.value, depth)
		x.foreign = x.foreign || len(at) == 0
		for _, a := range at {
			x.addPaths(a.value, nil)
		}
		for _, d := range x.embeddedMembers(m, depth) {
			x.addRoot(d, depth+1)
		}
	}
}

// isContract reports whether an expression embeds the contract, which has no components.
func isContract(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && importedPath(s.X) == ContractPath
}

// embeddedMembers returns the members of an embedded value, with the guards of the embedding. It
// returns only those that the text of the package shows.
func (x *names) embeddedMembers(m Member, depth int) []Member {
	var out []Member
	for _, at := range x.possibleMembers(m.value, depth) {
		eachMember(at.value, slices.Concat(m.guards, at.guards), func(d Member) { out = append(out, d) })
	}
	return out
}

// possibleMembers returns the members that an expression may refer to in the text of the package.
// If data selects a member, it returns all that could be selected.
func (x *names) possibleMembers(e ast.Expr, depth int) []Member {
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

// A lookup is the result of looking up a name below some members.
type lookup struct {
	// named are the fields with that literal name. others are fields that may have the name:
	// patterns, computed names and the elements of a list.
	named, others []Member
	// hidden are the embeddings whose members the text of the package does not show.
	hidden []Member
	// names are the literal names of all regular fields; they are open when there are
	// patterns or computed names beside them.
	names []string
	open  bool
}

// add notes a member that is not embedded.
func (l *lookup) add(m Member, name string) {
	if m.kind == named && isRegular(m.name) && !slices.Contains(l.names, m.name) {
		l.names = append(l.names, m.name)
	}
	l.open = l.open || m.kind != named
	switch {
	case !m.mayBe(name):
	case m.kind == named:
		l.named = append(l.named, m)
	default:
		l.others = append(l.others, m)
	}
}

// below looks up a name, or Each, below some members, also in the values that they embed.
func (x *names) below(at []Member, name string, depth int) lookup {
	var out lookup
	var look func(m Member, depth int)
	look = func(m Member, depth int) {
		if m.kind != embedded {
			out.add(m, name)
			return
		}
		shown := x.possibleMembers(m.value, depth)
		if len(shown) == 0 {
			out.hidden = append(out.hidden, m)
		}
		for _, at := range shown {
			eachMember(at.value, slices.Concat(m.guards, at.guards), func(d Member) { look(d, depth+1) })
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
