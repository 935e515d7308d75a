package vet

import (
	"strings"

	"operetta.dev/engine/fault"
)

// unset finds fields that make a component invalid whatever the custom resource: fields that nothing
// sets, and fields that refer to themselves.
func unset(v *view) fault.Faults {
	var out fault.Faults
	for _, c := range v.template {
		for _, f := range c.Faults {
			switch {
			case f.Hint != "":
			case strings.HasSuffix(f.Path, ".metadata.name"):
				f.Hint = "write metadata: name: cr.metadata.name, or another name"
			default:
				f.Hint = "set it"
			}
			out = append(out, f)
		}
	}
	return out
}
