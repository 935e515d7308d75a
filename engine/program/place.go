package program

import (
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// A value that several places of a package make has the position of any of them, mostly
// the contract's. What a person can change is found here: where the author wrote it,
// and, if that is in a template or in another shared field, where that is used.

// A home is where the author wrote the component or the hook that is being evaluated.
type home struct {
	syntax.Home

	name string
	path []cue.Selector
}

// within returns the program as one that places what it finds in one component. The
// value may not exist.
func (p *Program) within(name string, v cue.Value) *Program {
	out := *p
	sources := func() []ast.Node { return sourcesOf(v) }
	if !v.Exists() {
		sources = nil
	}
	out.home = home{p.index.HomeOf(name, sources), name, cue.ParsePath(componentPath(name)).Selectors()}
	return &out
}

// placed returns where the author finds what is at a position and at a path below the
// component: the position itself if it is the author's, and where it is used if it is
// not in the component.
func (p *Program) placed(at fault.Position, path []string) fault.Position {
	use, _ := p.home.Descend(path)
	switch {
	case use.IsZero():
		return at
	case at.File == "" || at.IsContract():
		return use
	case at.Use == "" && !p.home.Holds(at):
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
	if at, depth := p.home.Descend([]string{part, name}); depth == 2 {
		return at
	}
	var at fault.Position
	for _, at = range authored(v) {
		if p.home.Holds(at) {
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
	fields := p.home.FieldsAt(part, name)
	if len(fields) == 0 {
		for _, n := range sourcesOf(v) {
			if f, ok := n.(*ast.Field); ok && !fault.At(f.Pos()).IsContract() {
				fields = append(fields, f)
			}
		}
	}
	computed, fromData = p.index.FromData(fields)
	return computed, fromData || p.home.FromData()
}
