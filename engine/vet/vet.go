package vet

import (
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// Package returns the faults of a package, by position.
func Package(p *program.Program) fault.Faults { return newView(p, nil).apply(faultRules) }

// Warnings returns what is valid and probably a mistake, by position, in the form of faults.
func Warnings(p *program.Program) fault.Faults { return newView(p, nil).apply(warningRules) }

// All returns what Package and Warnings return, for the price of one of them, and the kinds whose
// scope is unknown, as questions to the author. given has the scopes of the kinds whose definitions
// the author has provided.
func All(p *program.Program, given Scopes) (faults, warnings, questions fault.Faults) {
	v := newView(p, given)
	return v.apply(faultRules), v.apply(warningRules), v.apply(questionRules)
}
