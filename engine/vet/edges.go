package vet

import (
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// edges finds declared edges to components that do not exist, and from a component to itself.
// Edges that follow from references belong to the rule references.
func edges(v *view) fault.Faults {
	known, open := v.Syntax().Names("components")
	var out fault.Faults
	for _, c := range v.components() {
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

// components returns the names of the components of the template in the author's order, and then
// of those that only the text names.
func (v *view) components() []string {
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

// edgesOf returns the edges of a component: those of the template, and then those that only the
// text has.
func (v *view) edgesOf(component string) []program.Edge {
	var out []program.Edge
	for _, c := range v.template {
		if c.Name == component {
			out = append(out, c.Edges...)
		}
	}
	for _, e := range program.EdgesIn(v.Syntax(), component) {
		i := slices.IndexFunc(out, func(o program.Edge) bool { return o.To == e.To })
		switch {
		case i < 0:
			out = append(out, e)
		case out[i].Origin == program.Declared:
			out[i].If = e.If // an evaluation does not say under which conditions it has found it
		}
	}
	return out
}
