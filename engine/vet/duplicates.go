package vet

import (
	"fmt"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
)

// duplicates finds objects that two places of a package render, so that each would overwrite the
// other forever.
func duplicates(v *view) fault.Faults {
	var out fault.Faults
	for _, s := range v.evaluations() {
		first := map[object.Ref]placed{}
		for _, o := range s.objects() {
			key := o.Identity.Identity() // all versions of a kind serve the same object
			if key.Namespace == "" {
				key.Namespace = s.namespace
			}
			before, twice := first[key]
			switch {
			case !twice:
				first[key] = o
			case !s.coincides:
				out = append(out, fault.Fault{
					Position: o.Position,
					Path:     o.path(),
					Message:  fmt.Sprintf("is the same %s as %s (%s)", o.Identity.Kind, before.path(), before.Position),
					Hint:     "give one of them another name, or make them one object",
				})
			}
		}
	}
	return out
}
