package render

import (
	"fmt"

	"operetta.dev/engine/graph"
	"operetta.dev/engine/program"
)

// Static returns what is known of a package without any custom resource: its
// components and their order. No component has a state, and no object is rendered.
func Static(p *program.Program) Output {
	ordered, faults := order(p.Template())
	components := make([]Component, len(ordered))
	for i, c := range ordered {
		components[i] = Component{Component: c}
	}
	return Output{Components: components, Faults: faults}
}

// Tree draws the components and their objects for a terminal, dependencies above
// what needs them. It errors when they have no order.
func (o Output) Tree() (string, error) { return o.dag().Tree(o.style()) }

// Mermaid returns the components and their objects as a Mermaid flowchart.
func (o Output) Mermaid() string { return o.dag().Mermaid(o.style()) }

func (o Output) dag() *dag {
	components := make([]program.Component, len(o.Components))
	for i, c := range o.Components {
		components[i] = c.Component
	}
	g, _ := dagOf(components) // the faults are in the output
	return g
}

func (o Output) style() graph.Style[string] {
	byName := map[string]Component{}
	for _, c := range o.Components {
		byName[c.Name] = c
	}
	return graph.Style[string]{
		Label: func(name string) string {
			switch state := byName[name].State; state {
			case "", Rendered:
				return name
			default:
				return fmt.Sprintf("%s [%s]", name, state)
			}
		},
		Lines: func(name string) []string { return objectLines(byName[name]) },
	}
}

// objectLines names each object by kind and name, or, as long as its name is not known,
// by its name in the package.
func objectLines(c Component) []string {
	lines := make([]string, len(c.Objects))
	for i, o := range c.Objects {
		switch {
		case o.Identity.Known():
			lines[i] = o.Identity.Kind + "/" + o.Identity.Name
		case o.Identity.Kind != "":
			lines[i] = o.Identity.Kind + " (" + o.Name + ")"
		default:
			lines[i] = o.Name
		}
	}
	return lines
}
