package vet

import (
	"operetta.dev/engine/fault"
)

// copies finds content of Secrets that a package copies to where more people may read it.
func copies(v *view) fault.Faults { return v.Copies() }
