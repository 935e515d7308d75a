package program

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"

	"operetta.dev/engine/fault"
)

// A derivedEdge is an edge that follows from references.
type derivedEdge struct {
	Edge
	// uses is a CUE struct with the names of the components that come to one of the
	// references, to be evaluated at the root; "" says that all do. A struct for all
	// components of a loop costs one evaluation, and not one each.
	uses string
}

// derive returns the edges from a component to those whose outputs or live
// objects its bodies refer to, in the order of the text.
func (x *index) derive(component string, bodies []member) []derivedEdge {
	var out []derivedEdge
	for _, b := range bodies {
		for _, d := range x.deriveOne(b, bodies) {
			if d.To == component {
				continue
			}
			i := slices.IndexFunc(out, func(have derivedEdge) bool { return have.To == d.To })
			if i < 0 {
				out = append(out, d)
				continue
			}
			out[i].merge(d)
		}
	}
	return out
}

// merge adds the uses of the same edge in another place.
func (d *derivedEdge) merge(other derivedEdge) {
	if d.uses == "" || other.uses == "" {
		d.uses, d.If = "", ""
		return
	}
	d.uses += ", " + other.uses
	if d.If != other.If {
		d.If += " || " + other.If
	}
}

// deriveOne returns the edges that follow from one of a component's bodies.
func (x *index) deriveOne(body member, bodies []member) []derivedEdge {
	r := newReferences(x)
	r.follow, r.needs, r.path = true, true, "components"
	for _, g := range body.guards {
		r.clause(g)
	}
	around := len(r.clauses)
	name, named := r.nameOf(body)
	if body.kind == pattern {
		name, named = fmt.Sprintf("%q", anyComponent), true
	}
	r.body(body)
	x.addNeeded(r.found)
	x.addReaders(body.name, r.found)
	var out []derivedEdge
	for _, f := range r.found {
		to, ok := f.dependency()
		if !ok {
			continue
		}
		at := f.Position
		if f.use != (fault.Position{}) && !(home{bodies: bodies}).holds(at) {
			at.Use = f.use.String()
		}
		d := derivedEdge{Edge: Edge{To: to, Until: UntilVerified, Origin: Derived, Optional: true, Position: at}}
		if named && len(f.clauses) > around && !r.beyond {
			d.uses = strings.Join(f.clauses, " ") + " {(" + name + "): true}"
			d.If = strings.Join(f.guards[around:], " && ")
		}
		i := slices.IndexFunc(out, func(have derivedEdge) bool { return have.To == to })
		if i < 0 {
			out = append(out, d)
			continue
		}
		out[i].merge(d)
	}
	return out
}

// anyComponent stands for every component in the uses of a pattern.
const anyComponent = "*"

// decisions are which references an evaluation comes to, as far as that was asked.
type decisions struct {
	root  cue.Value
	asked map[string]users
}

// users are the components that use an edge.
type users struct {
	names   map[string]bool
	decided bool
}

// over returns the program as one that decides which references an evaluation uses.
func (p *Program) over(root cue.Value) *Program {
	out := *p
	out.decisions = &decisions{root: root, asked: map[string]users{}}
	out.tally = &tally{limits: p.limits}
	return &out
}

// uses reports whether a component comes to a reference that makes an edge. What
// cannot be decided yet keeps the edge: it may be all that holds a change back.
func (p *Program) uses(component string, d derivedEdge) bool {
	if d.uses == "" || p.decisions == nil {
		return true
	}
	by, known := p.decisions.asked[d.uses]
	if !known {
		by = p.usersOf(d.uses)
		p.decisions.asked[d.uses] = by
	}
	return !by.decided || by.names[component] || by.names[anyComponent]
}

// usersOf evaluates which components use an edge.
func (p *Program) usersOf(uses string) users {
	// Parsed each time: CUE writes to the syntax that it compiles.
	expr, err := parser.ParseExpr("", "{"+uses+"}")
	if err != nil {
		return users{}
	}
	v := p.base.Context().BuildExpr(expr, cue.Scope(p.decisions.root), cue.ImportPath(p.importPath), cue.InferBuiltins(true)) //nolint:staticcheck // a package has one context
	if v.Validate(cue.Concrete(true)) != nil {
		return users{}
	}
	out := users{names: map[string]bool{}, decided: true}
	it, err := v.Fields()
	if err != nil {
		return users{}
	}
	for it.Next() {
		out.names[it.Selector().Unquoted()] = true
	}
	return out
}

// edgesOf returns the edges of the component that is being evaluated that follow from
// its references.
func (p *Program) edgesOf(component string) []derivedEdge {
	return p.index.edgesOf(component, p.home.bodies)
}

// edgesOf returns the edges of a component that follow from its references. Of a
// computed name, bodies are those that it may come from.
func (x *index) edgesOf(component string, bodies []member) []derivedEdge {
	if edges, ok := x.edges[component]; ok {
		return edges
	}
	if strings.HasPrefix(component, "hooks.") {
		return nil // a hook depends on its phase alone
	}
	var out []derivedEdge
	for i, d := range x.otherEdges {
		of := x.otherOf[i]
		mine := of == nil || len(bodies) == 0 || slices.ContainsFunc(bodies, func(m member) bool { return m.field == of })
		if !mine || d.To == component {
			continue
		}
		if i := slices.IndexFunc(out, func(have derivedEdge) bool { return have.To == d.To }); i >= 0 {
			out[i].merge(d)
			continue
		}
		out = append(out, d)
	}
	return out
}

// deriveOthers derives the edges of the components whose names only an evaluation
// knows, and notes which of the loops each is of.
func (x *index) deriveOthers() {
	for _, m := range slices.Concat(x.dynamicBody, x.anyBody) {
		var of *ast.Field
		if m.kind == dynamic {
			of = m.field
		}
		for _, d := range x.derive("", []member{m}) {
			x.otherEdges, x.otherOf = append(x.otherEdges, d), append(x.otherOf, of)
		}
	}
}

// textEdges returns the edges of a component that follow from its references, under
// whichever conditions.
func (p *Program) textEdges(component string) []Edge {
	var out []Edge
	for _, d := range p.index.edgesOf(component, nil) {
		out = append(out, d.Edge)
	}
	return out
}
