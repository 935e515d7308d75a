package vet

import (
	"operetta.dev/engine/fault"
)

// computedNames warns of references to components whose names are computed: no edge follows from them, as from others.
func computedNames(v *view) fault.Faults {
	var out fault.Faults
	for _, r := range v.Syntax().ComputedReferences() {
		path := "components"
		if r.Component != "" {
			path = joined("components", r.Component)
		}
		out = append(out, fault.Fault{
			Position: r.Position, Path: path,
			Message: r.Text + " has a computed name, so that no dependency follows from it: nothing waits until the other component is healthy, or orders their deletion",
			Hint:    "declare it, as in dependsOn: " + r.Label + ": {}",
		})
	}
	return out
}
