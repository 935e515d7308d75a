package check

import "operetta.dev/engine/program"

// Warnings returns what is right and probably not meant, by position: what a package
// copies from Secrets to where more people may read it.
func Warnings(p *program.Program) program.Faults { return p.Copies() }
