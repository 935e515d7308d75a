package dryrun

import (
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// maxRemembered bounds how many evaluations are remembered.
const maxRemembered = 2000

// A Remembering is a program that evaluates what it has evaluated before from memory, for many runs of a package that
// meet the same states again and again. It is for one goroutine.
type Remembering struct {
	*program.Program

	rollouts map[template.Key]program.Rollout
}

// NewRemembering returns a Remembering that has evaluated nothing yet.
func NewRemembering(p *program.Program) *Remembering {
	return &Remembering{p, map[template.Key]program.Rollout{}}
}

// Evaluate returns what Program.Evaluate returns. It must not be changed.
func (r *Remembering) Evaluate(s program.Session) (program.Rollout, error) {
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
