package vet

import (
	"slices"

	"operetta.dev/engine/fault"
)

// imports finds names that an imported package does not have. Whatever needs one would wait for ever.
func imports(v *view) fault.Faults {
	return slices.DeleteFunc(v.UnknownNames(), func(f fault.Fault) bool { return v.isEvaluated(f.Position) })
}
