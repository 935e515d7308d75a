package vet

import (
	"strings"

	"operetta.dev/engine/program"
)

// rendering finds what makes a component invalid without any custom resource: a
// field that nobody sets, or one that refers to itself.
func rendering(v *view) program.Faults {
	var out program.Faults
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
func waitsForItself(v *view) program.Faults {
	var out program.Faults
	for _, c := range v.template {
		report := func(text string, at program.Position, path ...string) {
			if !waits(text, c.Name) {
				return
			}
			out = append(out, program.Fault{
				Position: at,
				Path:     joined(append([]string{"components", c.Name}, path...)...),
				Message:  "waits for its own objects, which are not applied as long as it waits",
				Hint:     "give the reference a default, as in *live." + c.Name + ".x.y | \"\", or move what waits to a component of its own",
			})
		}
		for _, m := range c.Missing {
			report(m, v.positionIn(m, c.Name))
		}
		for _, r := range c.Requires {
			report(r.Detail, r.Position, "requires", r.Name)
		}
		if c.When.Verdict == program.Unknown {
			report(c.When.Detail, v.PositionOf("components", c.Name, "when"), "when")
		}
	}
	return out
}

// positionIn returns the position of the reference to a component's live objects
// that a text is about, or of the component.
func (v *view) positionIn(text, component string) program.Position {
	for _, r := range v.References() {
		own := len(r.Path) > 1 && r.Path[0] == "live" && r.Path[1] == component
		at := "(" + r.Position.String()
		if own && (strings.HasSuffix(text, at+")") || strings.Contains(text, at+", ")) {
			return r.Position
		}
	}
	return v.PositionOf("components", component)
}
