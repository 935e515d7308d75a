package vet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/patch"
)

// patchables finds fields that a package opens to patches, and that no patch ever changes.
func patchables(v *view) fault.Faults {
	var out fault.Faults
	for _, c := range v.template {
		for _, o := range c.Objects {
			for _, path := range slices.Sorted(maps.Keys(o.Patchable)) {
				if !slices.ContainsFunc(patch.ImmutableFields(), func(fixed string) bool {
					return path == fixed || strings.HasPrefix(path, fixed+".") || strings.HasPrefix(path, fixed+"[]")
				}) {
					continue
				}
				f := v.at("components", c.Name, "policy", o.Name)
				f.Path = joined("components", c.Name, "policy", o.Name, "patchable", path)
				f.Message = fmt.Sprintf("no patch ever changes %s", path)
				f.Hint = "remove it: it says which object it is, and whose"
				out = append(out, f)
			}
		}
	}
	return out
}
