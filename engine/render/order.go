package render

import (
	"errors"
	"fmt"

	"operetta.dev/engine/graph"
	"operetta.dev/engine/program"
)

// dag is the graph of components; each edge carries where it is written.
type dag = graph.Graph[string, program.Position]

// dagOf returns the graph of components, and the declared edges that lead nowhere.
func dagOf(components []program.Component) (*dag, program.Faults) {
	g := graph.New[string, program.Position]()
	names := make([]string, len(components))
	for i, c := range components {
		names[i] = c.Name
	}
	g.AddNode(names...)
	var faults program.Faults
	for _, c := range components {
		for _, e := range c.Edges {
			if g.AddEdge(c.Name, e.To, e.Position) == nil || e.Origin == program.Derived {
				continue // a reference that is not used leads to what may not be there
			}
			f := program.Fault{Position: e.Position, Path: edgePath(c.Name, e), Message: "there is no component " + e.To}
			if near, ok := program.Nearest(e.To, names); ok {
				f.Hint = fmt.Sprintf("did you mean %s?", near)
			}
			faults = append(faults, f)
		}
	}
	return g, faults
}

// order returns the components, dependencies first. When they have no order, they
// stay as they are, and the cycles are faults.
func order(components []program.Component) ([]program.Component, program.Faults) {
	g, faults := dagOf(components)
	names, err := g.Order()
	if err != nil {
		return components, append(faults, cycleFaults(err)...)
	}
	byName := make(map[string]program.Component, len(components))
	for _, c := range components {
		byName[c.Name] = c
	}
	out := make([]program.Component, len(names))
	for i, name := range names {
		out[i] = byName[name]
	}
	return out, faults
}

// cycleFaults returns one fault for each cycle.
func cycleFaults(err error) program.Faults {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var faults program.Faults
		for _, e := range joined.Unwrap() {
			faults = append(faults, cycleFaults(e)...)
		}
		return faults
	}
	f := program.Fault{Path: "components", Message: err.Error(), Hint: "remove one of the dependencies"}
	if cycle, ok := errors.AsType[*graph.CycleError[string, program.Position]](err); ok {
		f.Position = cycle.Path[0].Data
	}
	return program.Faults{f}
}

// edgePath returns where a declared edge is written.
func edgePath(component string, e program.Edge) string {
	return "components." + component + ".dependsOn." + e.To
}
