package vet

import (
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// hookEdges finds dependencies of hooks. The engine ignores them, so an author who orders the hooks
// of a phase relies on something that does not happen.
func hookEdges(v *view) fault.Faults {
	var out fault.Faults
	for _, h := range v.hooks() {
		for _, e := range h.Component.Edges {
			f := fault.Fault{
				Position: e.Position,
				Path:     joined(append(strings.SplitN(h.Component.Name, ".", 3), "dependsOn", e.To)...),
				Message:  "a hook cannot have dependencies: the hooks of a phase run concurrently",
				Hint:     "remove it; move the hook to another phase, or put what it waits for into requires",
			}
			if e.Origin == program.Declared && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// hooks returns the hooks of the template and of all samples.
func (v *view) hooks() []program.Hook {
	out := v.TemplateHooks()
	for _, s := range v.samples {
		out = append(out, s.rollout.Hooks...)
	}
	return out
}
