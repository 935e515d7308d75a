package check

import (
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
)

// maxRemembered bounds how many evaluations are remembered.
const maxRemembered = 2000

// A remembering is a program that evaluates what it has evaluated before from memory: the cases of a package
// meet the same states again and again. It is for one goroutine.
type remembering struct {
	*program.Program

	rollouts map[template.Key]program.Rollout
}

func newRemembering(p *program.Program) *remembering {
	return &remembering{p, map[template.Key]program.Rollout{}}
}

// Evaluate returns what Program.Evaluate returns. It must not be changed.
func (r *remembering) Evaluate(s program.Session) (program.Rollout, error) {
	key := r.View(s).Whole()
	if known, ok := r.rollouts[key]; ok {
		return known, nil
	}
	out, err := r.Program.Evaluate(s)
	if err == nil && len(r.rollouts) < maxRemembered {
		r.rollouts[key] = out
	}
	return out, err
}
