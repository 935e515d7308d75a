package vet

import (
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// All returns the faults of a package, the warnings of what is valid and probably a mistake, and the
// kinds whose scope is unknown, as questions to the author; each in the form of faults, by position.
// given has the scopes of the kinds whose definitions the author has provided.
func All(p *program.Program, given Scopes) (faults, warnings, questions fault.Faults) {
	v := newView(p, given)
	return p.Shown(v.apply(faultRules)...), p.Shown(v.apply(warningRules)...), p.Shown(v.apply(questionRules)...)
}
