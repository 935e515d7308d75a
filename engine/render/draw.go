package render

import (
	"fmt"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/graph"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// Static returns what a package shows without a custom resource: its components in order, without
// states and objects. If the dependencies have a cycle, that is a fault in the Output.
func Static(p *program.Program) Output {
	out := Output{Components: undecided(p.Template())}
	order, err := out.dag().Order()
	if err != nil {
		out.Faults = fault.Faults{{Path: "components", Message: err.Error(), Hint: "remove one of the dependencies"}}
		return out
	}
	byName := out.byName()
	for i, name := range order {
		out.Components[i] = byName[name]
	}
	return out
}

// undecided returns components without a state.
func undecided(components []program.Component) []rollout.ComponentPreview {
	out := make([]rollout.ComponentPreview, len(components))
	for i, c := range components {
		out[i] = rollout.ComponentPreview{Component: status.Component{Name: c.Name}, Source: c}
	}
	return out
}

// Tree draws the components and their objects for a terminal, dependencies first. It errors if the
// dependencies have a cycle.
func (o Output) Tree() (string, error) { return o.dag().Tree(o.lines()) }

// Mermaid returns the components and their objects as a Mermaid flowchart.
func (o Output) Mermaid() string { return o.dag().Mermaid(o.lines()) }

// dag returns the graph of the components; each edge carries where it is written.
func (o Output) dag() *graph.Graph[string, fault.Position] {
	g := graph.New[string, fault.Position]()
	components := o.byName()
	for _, c := range o.Components {
		if _, shown := components[c.Name]; shown {
			g.AddNode(c.Name)
		}
	}
	for _, c := range o.Components {
		for _, e := range c.Source.Edges {
			if g.Has(c.Name) && g.Has(e.To) {
				_ = g.AddEdge(c.Name, e.To, e.Position) // both are there
			}
		}
	}
	return g
}

// byName returns the components that are no hooks.
func (o Output) byName() map[string]rollout.ComponentPreview {
	out := map[string]rollout.ComponentPreview{}
	for _, c := range o.Components {
		out[c.Name] = c
	}
	for _, h := range o.Hooks {
		delete(out, h.Component.Name)
	}
	return out
}

// lines returns what says the lines of a component by its name: its label and its objects.
func (o Output) lines() func(string) []string {
	byName := o.byName()
	return func(name string) []string {
		return append([]string{label(byName[name])}, objectLines(byName[name].Source)...)
	}
}

// label returns the name of a component, with its state if there is something to say about it.
func label(c rollout.ComponentPreview) string {
	if c.State == "" || c.State == status.Applied || c.State == status.Verified || c.Reason == status.ReasonDependency {
		return c.Name
	}
	return fmt.Sprintf("%s [%s]", c.Name, c.State)
}

// objectLines names each object by kind and name, or by its name in the package while the other one
// is not known.
func objectLines(c program.Component) []string {
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
