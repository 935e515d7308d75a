package vet

import "operetta.dev/engine/program"

// copies finds what a package copies from Secrets to where more people may read it.
func copies(v *view) program.Faults { return v.Copies() }
