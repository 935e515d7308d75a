package program

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A value that several places of a package make has the position of any of them, mostly
// the contract's. What a person can change is found here: where the author wrote it,
// and, if that is in a template or in another shared field, where that is used.

// A home is where the author wrote a component or a hook.
type home struct {
	name string
	path []cue.Selector
	// bodies are the members that are written for it, and not elsewhere.
	bodies []member
}

// within returns the program as one that places what it finds in one component. The
// value may not exist.
func (p *Program) within(name string, v cue.Value) *Program {
	out := *p
	out.home = home{name: name, path: cue.ParsePath(componentPath(name)).Selectors(), bodies: p.index.homeOf(name, v)}
	return &out
}

// homeOf returns what is written for a component. Of a computed name only the value
// tells which of several loops it comes from.
func (x *index) homeOf(name string, v cue.Value) []member {
	if own := x.homes[name]; len(own) > 0 {
		return own
	}
	computed := x.homes[computedName]
	if len(computed) < 2 || !v.Exists() {
		return computed
	}
	written := sourcesOf(v)
	return slices.DeleteFunc(slices.Clone(computed), func(m member) bool { return !slices.Contains(written, ast.Node(m.field)) })
}

// placed returns where the author finds what is at a position and at a path below the
// component: the position itself if it is the author's, and where it is used if it is
// not in the component.
func (p *Program) placed(at fault.Position, path []string) fault.Position {
	use, ok := p.home.deepest(path)
	switch {
	case !ok:
		return at
	case at.File == "" || at.IsContract():
		return use
	case at.Use == "" && !p.home.holds(at):
		at.Use = use.String()
	}
	return at
}

// placedFault returns a fault with the author's place. One of another component is
// where that has it.
func (p *Program) placedFault(f fault.Fault) fault.Fault {
	f.Origin = fault.Origin{}
	if own, _ := p.sorted(p.home.name, fault.Faults{f}); len(own) > 0 {
		f.Position = p.placed(f.Position, p.home.below(f.Path))
	}
	return f
}

// placeOf returns where a member of a part of the component is written.
func (p *Program) placeOf(v cue.Value, part, name string) fault.Position {
	if at, ok := p.home.exact(part, name); ok {
		return at
	}
	var at fault.Position
	for _, at = range authored(v) {
		if p.home.holds(at) {
			return at
		}
	}
	if first := authored(v); len(first) > 0 {
		at = first[0]
	}
	return p.placed(at, []string{part, name})
}

// below returns the names of a path below the component.
func (h home) below(path string) []string {
	sels := cue.ParsePath(path).Selectors()
	if len(sels) < len(h.path) {
		return nil
	}
	for i, sel := range h.path {
		if sels[i] != sel {
			return nil
		}
	}
	var out []string
	for _, sel := range sels[len(h.path):] {
		if sel.LabelType() != cue.StringLabel {
			break
		}
		out = append(out, sel.Unquoted())
	}
	return out
}

// holds reports whether a position is in what is written for the component.
func (h home) holds(at fault.Position) bool {
	for _, m := range h.bodies {
		if m.field != nil && spanOf(m.field).holds(at) {
			return true
		}
	}
	return false
}

// exact returns where a member of a part is written, if it is written for the component.
func (h home) exact(path ...string) (fault.Position, bool) {
	at, depth := h.descend(path)
	return at, depth == len(path)
}

// deepest returns where the last field of a path is written that is written for the
// component, or the component itself.
func (h home) deepest(path []string) (fault.Position, bool) {
	at, _ := h.descend(path)
	return at, at != (fault.Position{})
}

// descend follows a path through the text, and returns where it ends and at which depth.
func (h home) descend(path []string) (at fault.Position, depth int) {
	within := h.bodies
	for _, m := range within {
		if m.field != nil {
			at = fault.At(m.field.Label.Pos())
			break
		}
	}
	for _, name := range path {
		next := membersNamed(within, name)
		if len(next) == 0 {
			break
		}
		at, within, depth = fault.At(next[0].field.Label.Pos()), next, depth+1
	}
	return at, depth
}

// authored returns where the author wrote what makes a value, in CUE's order.
func authored(v cue.Value) []fault.Position {
	var out []fault.Position
	for _, n := range sourcesOf(v) {
		at := fault.At(n.Pos())
		if f, ok := n.(*ast.Field); ok {
			at = fault.At(f.Label.Pos())
		}
		if at.File != "" && !at.IsContract() {
			out = append(out, at)
		}
	}
	return out
}

// sourcesOf returns the pieces of text that make a value: fields where there are any,
// as a field is written where its label is, not where its parts are.
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
func (p *Program) withPlaces(faults fault.Faults) fault.Faults {
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
			name = Phase(name).hook(sels[2].Unquoted())
		}
		if f.Position.File == "" || f.Position.IsContract() {
			f.Position = p.nearestAuthored(sels)
		}
		out[i] = p.within(name, p.static.LookupPath(cue.MakePath(sels[:length[sels[0]]]...))).placedFault(f)
	}
	return out
}

// nearestAuthored returns where the deepest field of a path is written that the author
// wrote, in a template or not.
func (p *Program) nearestAuthored(path []cue.Selector) fault.Position {
	for n := len(path); n > 1; n-- {
		if at := authored(p.static.LookupPath(cue.MakePath(path[:n]...))); len(at) > 0 {
			return at[0]
		}
	}
	return fault.Position{}
}

// fromData reports whether the name of a member of a part of the component is computed,
// and whether the member or the component is there by what an evaluation decides.
func (p *Program) fromData(v cue.Value, part, name string) (computed, fromData bool) {
	fields := p.home.fieldsAt(part, name)
	if len(fields) == 0 {
		for _, n := range sourcesOf(v) {
			if f, ok := n.(*ast.Field); ok && !fault.At(f.Pos()).IsContract() {
				fields = append(fields, f)
			}
		}
	}
	always := slices.ContainsFunc(fields, func(f *ast.Field) bool { return !p.index.fromData[f] })
	literal := slices.ContainsFunc(fields, func(f *ast.Field) bool { return kindOf(f) == named })
	return !literal, !always || p.home.fromData(p.index)
}

// fromData reports whether it is by an evaluation that the component is there.
func (h home) fromData(x *index) bool {
	return !slices.ContainsFunc(h.bodies, func(m member) bool { return m.field != nil && !x.fromData[m.field] })
}

// fieldsAt returns the fields of a path that are written for the component.
func (h home) fieldsAt(path ...string) []*ast.Field {
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
func membersNamed(within []member, name string) []member {
	var out []member
	for _, m := range within {
		eachMember(m.value, nil, func(d member) {
			if d.kind == named && d.name == name {
				out = append(out, d)
			}
		})
	}
	return out
}
