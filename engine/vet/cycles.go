package vet

import (
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/graph"
	"operetta.dev/engine/program"
)

// cycles finds components that wait for each other.
func cycles(v *view) fault.Faults {
	var out fault.Faults
	for i := range max(len(v.samples), 1) {
		for _, cycle := range v.graphOf(i).Cycles() {
			f := fault.Fault{
				Position: cycle.Path[0].Data,
				Path:     joined("components", cycle.Path[0].From),
				Message:  cycle.Error(),
				Hint:     "they wait for each other forever: remove one of the edges; a value that follows from cr needs no reference to live objects or outputs",
			}
			if !slices.ContainsFunc(out, func(o fault.Fault) bool { return o.Path == f.Path }) {
				out = append(out, f)
			}
		}
	}
	return out
}

// graphOf returns the edges that a sample has together; the conditions of others may exclude each other. Without any
// samples, it has the edges without conditions.
func (v *view) graphOf(sample int) *graph.Graph[string, fault.Position] {
	g := graph.New[string, fault.Position]()
	names := v.components()
	g.AddNode(names...)
	for _, from := range names {
		for _, e := range v.edgesOf(from) {
			if e.To == from || !g.Has(e.To) {
				continue // the rule edges reports it
			}
			if e.If != "" && !v.uses(sample, from, e) {
				continue
			}
			_ = g.AddEdge(from, e.To, e.Position) // both nodes exist
		}
	}
	return g
}

// uses reports whether a sample has an edge that has conditions. A reference counts only if it is evaluated for a
// resource with as few fields as the schema allows, which is the first one.
func (v *view) uses(sample int, from string, edge program.Edge) bool {
	if sample >= len(v.samples) || sample > 0 && edge.Origin == program.Derived {
		return false
	}
	return slices.ContainsFunc(v.samples[sample].rollout.Components, func(c program.Component) bool {
		return c.Name == from && slices.ContainsFunc(c.Edges, func(e program.Edge) bool { return e.To == edge.To })
	})
}
