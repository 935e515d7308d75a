package dryrun

import (
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// maxRemembered bounds how many evaluations are remembered.
const maxRemembered = 2000

// A CachingProgram is a program that evaluates what it has evaluated before from memory, for many runs of a package that
// meet the same states again and again. It is for one goroutine.
type CachingProgram struct {
	*program.Program

	rollouts map[template.Key]program.Rollout
}

// NewCachingProgram returns a CachingProgram that has evaluated nothing yet.
func NewCachingProgram(p *program.Program) *CachingProgram {
	return &CachingProgram{p, map[template.Key]program.Rollout{}}
}

// Evaluate returns what Program.Evaluate returns. It must not be changed.
func (r *CachingProgram) Evaluate(s program.Session) (program.Rollout, error) {
	key := r.Views().Of(s).Whole()
	if known, ok := r.rollouts[key]; ok {
		return known, nil
	}
	out, err := r.Program.Evaluate(s)
	if err == nil && len(r.rollouts) < maxRemembered {
		r.rollouts[key] = out
	}
	return out, err
}
