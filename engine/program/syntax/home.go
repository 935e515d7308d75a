package syntax

import (
	"slices"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A Home is where the author wrote a component or a hook, and not what it takes from
// elsewhere. Its zero value is nowhere.
type Home struct {
	index  *Index
	bodies []Member
}

// HomeOf returns where a component is written. Of a computed name, only the sources of its
// value tell from which of several loops it comes; nil stands for all loops.
func (x *Index) HomeOf(name string, sources func() []ast.Node) Home {
	if own := x.homes[name]; len(own) > 0 {
		return Home{x, own}
	}
	computed := x.homes[ComputedName]
	if len(computed) < 2 || sources == nil {
		return Home{x, computed}
	}
	from := sources()
	return Home{x, slices.DeleteFunc(slices.Clone(computed), func(m Member) bool { return !slices.Contains(from, ast.Node(m.field)) })}
}

// Holds reports whether a position is in what is written for the component.
func (h Home) Holds(at fault.Position) bool {
	return slices.ContainsFunc(h.bodies, func(m Member) bool { return m.field != nil && spanOf(m.field).holds(at) })
}

// Descend follows a path through the component, and returns where the last field that is
// written for it is, and how many names of the path lead to that. The position is zero if
// not even the component is written.
func (h Home) Descend(path []string) (at fault.Position, depth int) {
	within := h.bodies
	for _, m := range within {
		if m.field != nil {
			at = m.Position()
			break
		}
	}
	for _, name := range path {
		next := membersNamed(within, name)
		if len(next) == 0 {
			break
		}
		at, within, depth = next[0].Position(), next, depth+1
	}
	return at, depth
}

// FieldsAt returns the fields of a path that are written for the component.
func (h Home) FieldsAt(path ...string) []*ast.Field {
	within := h.bodies
	for _, name := range path {
		within = membersNamed(within, name)
	}
	var out []*ast.Field
	for _, m := range within {
		out = append(out, m.field)
	}
	return out
}

// membersNamed returns the members of a name below others.
func membersNamed(within []Member, name string) []Member {
	var out []Member
	for _, m := range within {
		for _, d := range m.Members() {
			if d.kind == named && d.name == name {
				out = append(out, d)
			}
		}
	}
	return out
}

// FromData reports whether an evaluation decides that the component is there.
func (h Home) FromData() bool {
	return !slices.ContainsFunc(h.bodies, func(m Member) bool { return m.field != nil && !h.index.fromData[m.field] })
}

// FromData reports whether an evaluation decides the names of some fields, and whether it
// decides that there is any of them.
func (x *Index) FromData(fields []*ast.Field) (computed, fromData bool) {
	literal := slices.ContainsFunc(fields, func(f *ast.Field) bool { return kindOf(f) == named })
	always := slices.ContainsFunc(fields, func(f *ast.Field) bool { return !x.fromData[f] })
	return !literal, !always
}

// Parameters returns where templates that a component embeds declare a part of it, and
// the component itself does not.
func (h Home) Parameters(part string) []fault.Position {
	if h.index == nil {
		return nil
	}
	declared, _, _ := h.index.membersOf(h.bodies, part)
	var out []fault.Position
	for _, m := range declared {
		if at := m.Position(); !h.Holds(at) {
			out = append(out, at)
		}
	}
	return out
}
