package vet

import (
	"operetta.dev/engine/fault"
)

// A gap is something that the contract has and the engine does not act on yet. It
// is refused, because an author who writes it relies on it. Once the engine learns
// it, its entry goes.
type gap struct {
	what string
	hint string
	// find returns where a package uses it.
	find func(v *view) fault.Faults
}

var gaps = []gap{
	{
		what: "more than one version",
		hint: "keep one entry in versions",
		find: func(v *view) fault.Faults {
			var out fault.Faults
			for i, version := range v.Meta().Versions {
				if i > 0 {
					out = append(out, v.at("versions", version.Name))
				}
			}
			return out
		},
	},
	{
		what: "conversion between versions",
		hint: "keep one version, and no convert",
		find: func(v *view) fault.Faults {
			var out fault.Faults
			for _, version := range v.Meta().Versions {
				if at := v.at("versions", version.Name, "convert"); !at.Position.IsZero() {
					out = append(out, at)
				}
			}
			return out
		},
	},
}

// unsupported finds uses of what the engine does not act on yet.
func unsupported(v *view) fault.Faults {
	var out fault.Faults
	for _, g := range gaps {
		for _, f := range g.find(v) {
			f.Message, f.Hint = g.what+" is not supported yet", g.hint
			out = append(out, f)
		}
	}
	return out
}

// at returns a fault with the path and position of something that is written.
func (v *view) at(path ...string) fault.Fault {
	return fault.Fault{Position: v.Syntax().PositionOf(path...), Path: joined(path...)}
}
