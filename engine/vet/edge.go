package vet

import (
	"errors"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/graph"
	"operetta.dev/engine/program"
)

// edges finds edges to components that do not exist, and from one to itself. An
// edge that follows from a reference has the rule of references.
func edges(v *view) fault.Faults {
	known, open := v.Syntax().Names("components")
	var out fault.Faults
	for _, c := range v.named() {
		for _, e := range v.edgesOf(c) {
			f := fault.Fault{Position: e.Position, Path: joined("components", c, "dependsOn", e.To)}
			switch {
			case e.Origin != program.Declared:
				continue
			case e.To == c:
				f.Message, f.Hint = "a component cannot depend on itself", "remove it"
			case !open && !slices.Contains(known, e.To):
				f.Message, f.Hint = "there is no component "+e.To, program.HintAmong(e.To, known)
			default:
				continue
			}
			out = append(out, f)
		}
	}
	return out
}

// hookEdges finds dependencies of hooks. The engine runs a hook when its phase has come,
// and an author who orders hooks of a phase relies on more.
func hookEdges(v *view) fault.Faults {
	hooks := v.TemplateHooks()
	for _, s := range v.samples {
		hooks = append(hooks, s.rollout.Hooks...)
	}
	var out fault.Faults
	for _, h := range hooks {
		for _, e := range h.Component.Edges {
			f := fault.Fault{
				Position: e.Position,
				Path:     joined(append(strings.SplitN(h.Component.Name, ".", 3), "dependsOn", e.To)...),
				Message:  "a hook depends on nothing: it runs when its phase has come, beside the other hooks of it",
				Hint:     "remove it; put the hook into another phase, or what it waits for into requires",
			}
			if e.Origin == program.Declared && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// cycles finds components that wait for each other.
func cycles(v *view) fault.Faults {
	g := graph.New[string, fault.Position]()
	names := v.named()
	g.AddNode(names...)
	for _, from := range names {
		for _, e := range v.edgesOf(from) {
			if e.To == from || !g.Has(e.To) {
				continue // see edges
			}
			if e.If != "" && !v.usesByDefault(from, e.To) {
				continue // the conditions of a circle's edges may exclude each other
			}
			if err := g.AddEdge(from, e.To, e.Position); err != nil {
				return fault.Faults{{Position: e.Position, Message: err.Error()}}
			}
		}
	}
	_, err := g.Order()
	var out fault.Faults
	for _, one := range split(err) {
		if cycle, ok := errors.AsType[*graph.CycleError[string, fault.Position]](one); ok {
			out = append(out, fault.Fault{
				Position: cycle.Path[0].Data,
				Path:     joined("components", cycle.Path[0].From),
				Message:  cycle.Error(),
				Hint:     "they wait for each other for ever: remove one of the edges; what is known from cr needs no reference to live objects or outputs",
			})
		}
	}
	return out
}

// usesByDefault reports whether a resource with as little as the schema asks for comes to
// a reference that makes an edge.
func (v *view) usesByDefault(from, to string) bool {
	if len(v.samples) == 0 {
		return false
	}
	return slices.ContainsFunc(v.samples[0].rollout.Components, func(c program.Component) bool {
		return c.Name == from && slices.ContainsFunc(c.Edges, func(e program.Edge) bool { return e.To == to })
	})
}

// split returns the errors that one error joins.
func split(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()
	}
	return []error{err}
}

// named returns the components that the template has, in the author's order, and
// those that only the text names.
func (v *view) named() []string {
	var out []string
	for _, c := range v.template {
		out = append(out, c.Name)
	}
	known, _ := v.Syntax().Names("components")
	for _, name := range known {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// edgesOf returns the edges of a component: those that an evaluation finds, and
// those that the text has besides.
func (v *view) edgesOf(component string) []program.Edge {
	var out []program.Edge
	for _, c := range v.template {
		if c.Name == component {
			out = append(out, c.Edges...)
		}
	}
	for _, e := range program.EdgesIn(v.Syntax(), component) {
		if !slices.ContainsFunc(out, func(o program.Edge) bool { return o.To == e.To }) {
			out = append(out, e)
		}
	}
	return out
}
