package syntax

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A DerivedEdge is a dependency of a component on another one that follows from a
// reference.
type DerivedEdge struct {
	To string
	// If are the conditions under which it exists, as the author wrote them, or "" if it always
	// does.
	If       string
	Position fault.Position
	// Uses is a CUE struct with the names of the components that evaluate one of the
	// references, to be evaluated at the root; "" means that all do. One struct for all
	// components of a loop costs one evaluation in total.
	Uses string
	// of is the loop whose components have the edge; nil stands for all components.
	of *ast.Field
}

// AnyComponent stands for every component in the uses of a pattern.
const AnyComponent = "*"

// derive returns the edges from a component to those whose outputs or live
// objects its bodies refer to, in the order of the text.
func (x *reader) derive(component string, bodies []Member) []DerivedEdge {
	var out []DerivedEdge
	for _, b := range bodies {
		for _, d := range x.deriveOne(b, bodies) {
			if d.To != component {
				out = withEdge(out, d)
			}
		}
	}
	return out
}

// withEdge adds an edge, as another use if there is one to the same component.
func withEdge(edges []DerivedEdge, d DerivedEdge) []DerivedEdge {
	i := slices.IndexFunc(edges, func(have DerivedEdge) bool { return have.To == d.To })
	switch {
	case i < 0:
		return append(edges, d)
	case edges[i].Uses == "" || d.Uses == "":
		edges[i].Uses, edges[i].If = "", ""
		return edges
	}
	edges[i].Uses += ", " + d.Uses
	edges[i].If = Either(edges[i].If, d.If)
	return edges
}

// deriveOne returns the edges that follow from one of a component's bodies.
func (x *reader) deriveOne(body Member, bodies []Member) []DerivedEdge {
	r := newReferences(x.Index)
	r.follow, r.clausesRead, r.path = true, x.clauses, "components"
	for _, g := range body.guards {
		r.clause(g)
	}
	around := len(r.clauses)
	name, hasName := r.nameOf(body)
	if body.kind == pattern {
		name, hasName = fmt.Sprintf("%q", AnyComponent), true
	}
	r.body(body)
	x.addNeeded(r.found)
	x.addReaders(body.name, r.found)
	x.addComputed(body, r.found)
	var out []DerivedEdge
	for _, f := range r.found {
		to, ok := f.Dependency()
		if !ok {
			continue
		}
		at := f.Position
		if !f.use.IsZero() && !(Declaration{bodies: bodies}).Holds(at) {
			at.Use = f.use.String()
		}
		d := DerivedEdge{To: to, Position: at}
		if hasName && len(f.clauses) > around && !r.beyond {
			d.Uses = strings.Join(f.clauses, " ") + " {(" + name + "): true}"
			d.If = strings.Join(f.guards[around:], " && ")
		}
		out = withEdge(out, d)
	}
	return out
}

// DerivedEdges returns the edges of a component that follow from its references. Of a
// computed name, own identifies the loops that it may come from.
func (x *Index) DerivedEdges(component string, own Declaration) []DerivedEdge {
	if edges, ok := x.edges[component]; ok {
		return edges
	}
	if strings.HasPrefix(component, "hooks.") {
		return nil // a hook depends on its phase alone
	}
	var out []DerivedEdge
	for _, d := range x.otherEdges {
		mine := d.of == nil || len(own.bodies) == 0 || slices.ContainsFunc(own.bodies, func(m Member) bool { return m.field == d.of })
		if mine && d.To != component {
			out = withEdge(out, d)
		}
	}
	return out
}

// deriveOthers derives the edges of the components whose names only an evaluation
// knows, and notes which of the loops each is of.
func (x *reader) deriveOthers() {
	for _, m := range slices.Concat(x.dynamicBody, x.anyBody) {
		for _, d := range x.derive("", []Member{m}) {
			if m.kind == dynamic {
				d.of = m.field
			}
			x.otherEdges = append(x.otherEdges, d)
		}
	}
}
