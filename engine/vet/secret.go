package vet

import (
	"operetta.dev/engine/fault"
)

// copies finds what a package copies from Secrets to where more people may read it.
func copies(v *view) fault.Faults { return v.Copies() }
