// Package vet says what is wrong with an operator package, whatever the custom
// resource: what would otherwise show as a component that waits for ever.
//
// It views a loaded program and changes nothing. What CUE and the contract can tell
// by themselves has been said by program.Load already; the rules here are about what
// they accept:
//
//	references    names of components, objects, outputs and fields that do not exist
//	edges         dependsOn on what does not exist, and cycles
//	rendering     fields that nobody sets, and components that wait for themselves
//	identity      one object that is rendered twice, or where it may not be
//	untrusted     kinds, accounts, roles and the like that a tenant chooses
//	attributes    those that are misspelled, and lock nothing
//	defaults      a default that CUE drops, or that widens its type
//	comparisons   == between values that can never be equal
//	support       what the contract has and the engine does not act on yet
//	patchable     fields opened to patches that no patch ever changes
//
// Types holds the objects against the complete Kubernetes types as well, which the
// engine runs without.
//
// Warnings are about what is right and probably not meant, one rule a file as well:
//
//	copies        what a Secret holds, to where more people may read it
//	growth        what a user can make as long as they like
//
// Every rule errs on the side of silence: where only an evaluation with real data
// could tell, it says nothing. Faults come all at once, sorted, each with what to
// write instead.
//
//	p, err := program.Load(snapshot)
//	faults, warnings := check.All(p)
//	more := check.Types(snapshot, faults)
package vet
