package vet

import (
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// An Examination answers the questions of this package about one operator package. It evaluates the package once for
// all of them, and is not safe for concurrent use.
type Examination struct {
	program *program.Program
	given   Scopes
	// made are the samples, and is the view; nil before they were asked for.
	made *[]sample
	is   *view
}

// Examine returns the examination of a package. Only Types may be asked about one with faults. given has the scopes of
// the kinds whose definitions the author has provided.
func Examine(p *program.Program, given Scopes) *Examination {
	return &Examination{program: p, given: given}
}

// samples returns the samples of the package.
func (e *Examination) samples() []sample {
	if e.made == nil {
		made := samples(e.program)
		e.made = &made
	}
	return *e.made
}

// view returns the package with what several rules need of it.
func (e *Examination) view() *view {
	if e.is == nil {
		e.is = newView(e.program, e.given, e.samples())
	}
	return e.is
}

// All returns the faults of the package, the warnings of what is valid and probably a mistake, and the
// kinds whose scope is unknown, as questions to the author; each in the form of faults, by position.
func (e *Examination) All() (faults, warnings, questions fault.Faults) {
	p, v := e.program, e.view()
	return p.Shown(v.apply(faultRules)...), p.Shown(v.apply(warningRules)...), p.Shown(v.apply(questionRules)...)
}
