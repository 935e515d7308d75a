package program

import (
	"slices"

	"cuelang.org/go/cue"
)

// component evaluates one component.
func (p *Program) component(name string, v cue.Value) Component {
	c := Component{
		Name:     name,
		When:     p.decide(v),
		Edges:    p.edges(name, v),
		Requires: p.predicates(v, "requires"),
		Verify:   p.predicates(v, "verify"),
		Failed:   p.predicates(v, "failed"),
	}
	if err := v.Err(); err != nil {
		c.Rendering, c.Faults = RenderedInvalid, faultsOf(err)
		return c
	}
	p.render(&c, v)
	return c
}

// decide evaluates when. A component without one exists.
func (p *Program) decide(v cue.Value) Decision {
	when := v.LookupPath(cue.MakePath(cue.Str("when")))
	if !when.Exists() {
		return Decision{Verdict: True}
	}
	pred := p.predicate("when", when)
	return Decision{Verdict: pred.Verdict, Detail: pred.Explain()}
}

// edges returns the declared edges in the author's order, then the derived ones.
func (p *Program) edges(name string, v cue.Value) []Edge {
	var out []Edge
	it, err := v.LookupPath(cue.MakePath(cue.Str("dependsOn"))).Fields()
	for err == nil && it.Next() {
		e := it.Value()
		edge := Edge{
			To:       it.Selector().Unquoted(),
			Until:    Until(stringOr(e.LookupPath(cue.MakePath(cue.Str("until"))), string(UntilVerified))),
			Origin:   Declared,
			Optional: boolAt(e, "optional", false),
			Position: p.positionOf(e, "components", name, "dependsOn", it.Selector().Unquoted()),
		}
		if check := e.LookupPath(cue.MakePath(cue.Str("check"))); check.Exists() {
			pred := p.predicate("check", check)
			edge.Check = &pred
		}
		out = append(out, edge)
	}
	for _, d := range p.index.derivedEdges(name) {
		declared := slices.ContainsFunc(out, func(e Edge) bool { return e.To == d.To })
		if !declared {
			out = append(out, d)
		}
	}
	return out
}

// render evaluates the objects. One that is invalid makes the component invalid,
// one that is incomplete makes it incomplete: a component is atomic.
func (p *Program) render(c *Component, v cue.Value) {
	c.Rendering = RenderedComplete
	it, err := v.LookupPath(cue.MakePath(cue.Str("objects"))).Fields()
	for err == nil && it.Next() {
		name := it.Selector().Unquoted()
		o := Object{
			Name:     name,
			Policy:   p.policy(v, name),
			Position: p.positionOf(it.Value(), "components", c.Name, "objects", name),
		}
		p.renderObject(c, &o, it.Value())
		c.Objects = append(c.Objects, o)
	}
	switch {
	case len(c.Faults) > 0:
		c.Rendering = RenderedInvalid
	case len(c.Missing) > 0:
		c.Rendering = RenderedIncomplete
	}
}

func (p *Program) renderObject(c *Component, o *Object, v cue.Value) {
	incomplete := v.Validate(cue.Concrete(true))
	if incomplete == nil {
		manifest, err := toGo(v)
		if err == nil {
			o.Manifest, _ = manifest.(map[string]any)
			return
		}
		incomplete = err
	}
	if err := v.Validate(); err != nil {
		c.Faults = append(c.Faults, faultsOf(err)...)
		return
	}
	for _, f := range faultsOf(incomplete) {
		c.Missing = append(c.Missing, missingText(f))
	}
}

// policy returns how an object is treated.
func (p *Program) policy(component cue.Value, object string) Policy {
	v := component.LookupPath(cue.MakePath(cue.Str("policy"), cue.Str(object)))
	return Policy{
		Apply:  stringOr(v.LookupPath(cue.MakePath(cue.Str("apply"))), "ssa"),
		Delete: stringOr(v.LookupPath(cue.MakePath(cue.Str("delete"))), "delete"),
		Adopt:  boolAt(v, "adopt", false),
		Verify: stringOr(v.LookupPath(cue.MakePath(cue.Str("verify"))), "ready"),
	}
}

// missingText says what an incomplete object waits for, with the line that asks
// for it.
func missingText(f Fault) string {
	if p := f.Position.String(); p != "" {
		return f.Text() + " (" + p + ")"
	}
	return f.Text()
}

// positionOf returns where a member of a component is written, or, failing that,
// where CUE says its value comes from.
func (p *Program) positionOf(v cue.Value, root, component, part, member string) Position {
	m := p.index.names[root+"."+component+"."+part]
	if pos, ok := m.names[member]; ok {
		return pos
	}
	return positionAt(v.Pos())
}
