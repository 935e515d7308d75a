package vet

import (
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/graph"
	"operetta.dev/engine/program"
)

// cycles finds components that wait for each other.
func cycles(v *view) fault.Faults {
	g := graph.New[string, fault.Position]()
	names := v.components()
	g.AddNode(names...)
	for _, from := range names {
		for _, e := range v.edgesOf(from) {
			if e.To == from || !g.Has(e.To) {
				continue // the rule edges reports it
			}
			if e.If != "" && !v.usesByDefault(from, e.To) {
				continue // the conditions of the edges of a cycle may exclude each other
			}
			_ = g.AddEdge(from, e.To, e.Position) // both nodes exist
		}
	}
	var out fault.Faults
	for _, cycle := range g.Cycles() {
		out = append(out, fault.Fault{
			Position: cycle.Path[0].Data,
			Path:     joined("components", cycle.Path[0].From),
			Message:  cycle.Error(),
			Hint:     "they wait for each other forever: remove one of the edges; a value that follows from cr needs no reference to live objects or outputs",
		})
	}
	return out
}

// usesByDefault reports whether the reference that makes an edge is evaluated for a resource with
// as few fields as the schema allows.
func (v *view) usesByDefault(from, to string) bool {
	if len(v.samples) == 0 {
		return false
	}
	return slices.ContainsFunc(v.samples[0].rollout.Components, func(c program.Component) bool {
		return c.Name == from && slices.ContainsFunc(c.Edges, func(e program.Edge) bool { return e.To == to })
	})
}
