package vet

import (
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
)

// rendering finds what makes a component invalid without any custom resource: a
// field that nobody sets, or one that refers to itself.
func rendering(v *view) fault.Faults {
	var out fault.Faults
	for _, c := range v.template {
		for _, f := range c.Faults {
			if f.Hint == "" && strings.HasSuffix(f.Path, ".metadata.name") {
				f.Hint = "write metadata: name: cr.metadata.name, or another name"
			}
			if f.Hint == "" {
				f.Hint = "set it"
			}
			out = append(out, f)
		}
	}
	return out
}

// waitsForItself finds components that are not applied until one of their own
// objects is there.
func waitsForItself(v *view) fault.Faults {
	var out fault.Faults
	for _, c := range v.template {
		report := func(absent syntax.Reference, at fault.Position, path ...string) {
			if !slices.Equal(absent.Path, []string{"live", c.Name}) {
				return
			}
			out = append(out, fault.Fault{
				Position: at,
				Path:     joined(append([]string{"components", c.Name}, path...)...),
				Message:  "waits for its own objects, which are not applied as long as it waits",
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
