package vet

import (
	"maps"
	"slices"
	"strings"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/patch"
)

// patchable finds fields that a package opens to Patches, and that a Patch never changes.
func patchable(v *view) fault.Faults {
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
				f.Message = "a Patch never changes " + path
				f.Hint = "remove it: the field identifies the object, or its owner"
				out = append(out, f)
			}
		}
	}
	return out
}
