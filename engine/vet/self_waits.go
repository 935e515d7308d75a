package vet

import (
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// selfWaits finds components that are not applied until one of their own objects exists.
func selfWaits(v *view) fault.Faults {
	var out fault.Faults
	for _, c := range v.template {
		report := func(absent syntax.Reference, at fault.Position, path ...string) {
			if !slices.Equal(absent.Path, []string{"live", c.Name}) {
				return
			}
			out = append(out, fault.Fault{
				Position: at,
				Path:     joined(append([]string{"components", c.Name}, path...)...),
				Message:  "waits for its own objects, which are not applied while it waits",
				Hint:     "give the reference a default, as in *live." + c.Name + ".x.y | \"\", or move what waits to a component of its own",
			})
		}
		for _, r := range c.Absent {
			report(r, r.Position)
		}
		for _, r := range c.Requires {
			report(r.Absent, r.Position, "requires", r.Name)
		}
		if c.When.Verdict == program.Unknown {
			report(c.When.Absent, v.Syntax().PositionOf("components", c.Name, "when"), "when")
		}
	}
	return out
}
