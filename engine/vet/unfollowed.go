package vet

import (
	"slices"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// unfollowed warns, once, of a dangerous field whose value comes through more references than are
// followed, so that the rule untrusted cannot judge it.
func unfollowed(v *view) fault.Faults {
	objects, inputs, origins := v.Syntax().SourceObjects()
	for _, o := range objects {
		for _, d := range dangers {
			if d.isOf(o) {
				origins = append(origins, o.ExternalSources(d.path...)...)
			}
		}
	}
	for _, i := range inputs {
		origins = slices.Concat(origins, i.ExternalSources("kind"), i.ExternalSources("namespace"))
	}
	at := slices.IndexFunc(origins, func(o syntax.ExternalSource) bool { return o.Cut })
	if at < 0 {
		return nil
	}
	return fault.Faults{{
		Position: origins[at].At,
		Path:     origins[at].Field,
		Message:  "its value comes through more references than vet follows, so vet cannot tell whether a tenant decides it",
		Hint:     "use fewer references in between, or check it yourself",
	}}
}
