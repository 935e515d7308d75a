// Package vet finds what is wrong with an operator package, whatever the custom resource: mistakes
// that would otherwise show up as a component that waits forever.
//
// It reads a loaded program and changes nothing. CUE and the contract have reported their own errors
// in program.Load; the rules are about what those accept. rules.go lists them: each is in the file
// and the function of its name. Types also checks the objects against the complete Kubernetes types,
// which the engine does not load at run time.
//
// Rules err on the side of silence: they report nothing that only an evaluation with real data could
// decide. They report all faults at once, sorted, each with what to write instead.
//
//	p, err := program.Load(snapshot)
//	e := vet.Examine(p, scopes)
//	faults, warnings, questions := e.All()
//	more := e.Types(faults)
package vet
