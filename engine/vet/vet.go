package vet

import (
	"sync"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// An Examination answers the questions of this package about one operator package. It evaluates the package once for
// all of them, and is not safe for concurrent use.
type Examination struct {
	program *program.Program
	samples func() []sample
	view    func() *view
}

// Examine returns the examination of a package. Only Types may be asked about one with faults. given has the scopes of
// the kinds whose definitions the author has provided.
func Examine(p *program.Program, given Scopes) *Examination {
	e := &Examination{program: p, samples: sync.OnceValue(func() []sample { return samples(p) })}
	e.view = sync.OnceValue(func() *view { return newView(p, given, e.samples()) })
	return e
}

// All returns the faults of the package, the warnings of what is valid and probably a mistake, and the
// kinds whose scope is unknown, as questions to the author; each in the form of faults, by position.
func (e *Examination) All() (faults, warnings, questions fault.Faults) {
	p, v := e.program, e.view()
	return p.Shown(v.apply(faultRules)...), p.Shown(v.apply(warningRules)...), p.Shown(v.apply(questionRules)...)
}
