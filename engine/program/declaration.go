package program

import (
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// CUE gives a value that was unified from several places the position of any of them, mostly
// the contract's. A person needs the place that the author wrote, and, if that is in a
// template or in another shared field, the place that uses it.

// A declaration is where the author wrote the component or the hook that is being evaluated.
type declaration struct {
	syntax.Declaration

	index *syntax.Index
	name  string
	path  []cue.Selector
}

// declarationOf returns the declaration of one component or hook. The value may not exist.
func declarationOf(x *syntax.Index, name string, v cue.Value) declaration {
	var sources func() []ast.Node
	if v.Exists() {
		sources = func() []ast.Node { return sourcesOf(v) }
	}
	return declaration{x.DeclarationOf(name, sources), x, name, PathOf(name).Selectors()}
}

// placed returns a position for the author of the component: the position itself if the
// author wrote it, with where it is used if it is outside the component.
func (d declaration) placed(at fault.Position, path []string) fault.Position {
	use, _ := d.Descend(path)
	switch {
	case use.IsZero():
		return at
	case at.File == "" || at.IsContract():
		return use
	case at.Use == "" && !d.Holds(at):
		at.Use = use.String()
	}
	return at
}

// placedFault returns a fault with the author's place. A fault of another component keeps
// its own.
func (d declaration) placedFault(f fault.Fault) fault.Fault {
	f.Origin = fault.TokenPosition{}
	if own, _ := ofComponent(d.name, fault.Faults{f}); len(own) > 0 {
		f.Position = d.placed(f.Position, d.below(f.Path))
	}
	return f
}

// placeOf returns where a member of a part of the component is written.
func (d declaration) placeOf(v cue.Value, part, name string) fault.Position {
	if at, depth := d.Descend([]string{part, name}); depth == 2 {
		return at
	}
	var at fault.Position
	for _, at = range authored(v) {
		if d.Holds(at) {
			return at
		}
	}
	if first := authored(v); len(first) > 0 {
		at = first[0]
	}
	return d.placed(at, []string{part, name})
}

// below returns the names of a path below the component.
func (d declaration) below(path string) []string {
	sels := cue.ParsePath(path).Selectors()
	if len(sels) < len(d.path) {
		return nil
	}
	for i, sel := range d.path {
		if sels[i] != sel {
			return nil
		}
	}
	var out []string
	for _, sel := range sels[len(d.path):] {
		if sel.LabelType() != cue.StringLabel {
			break
		}
		out = append(out, sel.Unquoted())
	}
	return out
}

// authored returns the positions in the author's files that a value comes from, in CUE's order.
func authored(v cue.Value) []fault.Position {
	var out []fault.Position
	for _, n := range sourcesOf(v) {
		at := fault.PositionAt(n.Pos())
		if f, ok := n.(*ast.Field); ok {
			at = fault.PositionAt(f.Label.Pos())
		}
		if at.File != "" && !at.IsContract() {
			out = append(out, at)
		}
	}
	return out
}

// sourcesOf returns the syntax nodes that a value was unified from. They are fields if possible,
// because the position of a field is that of its label.
func sourcesOf(v cue.Value) []ast.Node {
	if !v.Exists() {
		return nil
	}
	if n := v.Source(); n != nil {
		return []ast.Node{n}
	}
	op, args := v.Expr()
	if op != cue.AndOp || len(args) < 2 {
		return nil
	}
	var out []ast.Node
	for _, a := range args {
		out = append(out, sourcesOf(a)...)
	}
	return out
}

// withPlaces returns the faults of a whole package with the author's places.
func (s *Static) withPlaces(faults fault.Faults) fault.Faults {
	out := make(fault.Faults, len(faults))
	for i, f := range faults {
		out[i] = f
		sels := cue.ParsePath(f.Path).Selectors()
		length := map[cue.Selector]int{cue.Str("components"): 2, cue.Str("hooks"): 3}
		if len(sels) == 0 || len(sels) < length[sels[0]] || length[sels[0]] == 0 {
			continue
		}
		name := sels[1].Unquoted()
		if len(sels) > 2 && sels[0] == cue.Str("hooks") {
			name = HookPhase(name).hook(sels[2].Unquoted())
		}
		if f.Position.File == "" || f.Position.IsContract() {
			f.Position = s.nearestAuthored(sels)
		}
		out[i] = declarationOf(s.index, name, s.value.LookupPath(cue.MakePath(sels[:length[sels[0]]]...))).placedFault(f)
	}
	return out
}

// nearestAuthored returns the position of the deepest field on a path that the author wrote, in a
// template or not.
func (s *Static) nearestAuthored(path []cue.Selector) fault.Position {
	for n := len(path); n > 1; n-- {
		if at := authored(s.value.LookupPath(cue.MakePath(path[:n]...))); len(at) > 0 {
			return at[0]
		}
	}
	return fault.Position{}
}

// fromData reports whether the name of a member of a part of the component is computed,
// and whether an evaluation decides that the member or the component exists.
func (d declaration) fromData(v cue.Value, part, name string) (computed, fromData bool) {
	fields := d.FieldsAt(part, name)
	if len(fields) == 0 {
		for _, n := range sourcesOf(v) {
			if f, ok := n.(*ast.Field); ok && !fault.PositionAt(f.Pos()).IsContract() {
				fields = append(fields, f)
			}
		}
	}
	computed, fromData = d.index.FromData(fields)
	return computed, fromData || d.FromData()
}
