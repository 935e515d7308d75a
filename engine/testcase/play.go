package testcase

import (
	"context"
	"fmt"
	"strings"

	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/render"
)

// A playedTest is a test that is taken under a schedule.
type playedTest struct {
	*run
	schedule

	steps []step
	// begun says that the step has begun already.
	begun bool
	// impossible says why the next step could not begin, or is nil.
	impossible error
	trace      []string
}

// play takes the steps under a schedule, and returns the end and what has happened. It tells how many writes each step
// has had, if count is not nil. It errors with errImpossible if a step could not begin.
func (e *explorer) play(ctx context.Context, s schedule, count func(step, writes int)) (finalState, []string, error) {
	session, _, err := render.NewSession(ctx, e.program, e.input)
	if err != nil {
		return finalState{}, nil, err
	}
	session.World().EvaluateWith(e.program.GroupVersionKind().GroupKind(), e.evaluator)
	session.World().SetControllers(s.controllers)
	r := newRun(e.test, session, e.program, e.input)
	p := &playedTest{run: r, schedule: s, steps: e.steps}
	for i := range e.steps {
		if err := p.take(ctx, i); err != nil {
			return finalState{}, p.trace, err
		}
		if count != nil {
			count(i, session.World().Seen().Writes())
		}
	}
	end, err := p.end(ctx)
	return end, p.trace, err
}

// take takes one step: somebody changes something, and the operator acts until it rests, or has died.
func (p *playedTest) take(ctx context.Context, i int) error {
	world := p.session.World()
	disturbed := i == p.step
	if disturbed && p.frozen > 0 {
		world.Seen().FreezeCache()
	}
	world.SetControllers(p.controllers)
	if p.steps[i].controllers() == dryrun.ActNever {
		world.SetControllers(dryrun.ActNever)
	}
	if !p.begun {
		p.sayf("step %d begins", i)
		err := p.change(p.steps[i])
		if err != nil && p.away && i == p.step+1 {
			return errImpossible
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.steps[i], err)
		}
	}
	p.begun = false
	if disturbed {
		world.Seen().InjectFaults(p.plan)
		p.beginNextAfter(i)
	} else {
		world.Seen().InjectFaults(schedule{}.plan)
	}
	err := p.rest(ctx, disturbed)
	world.AfterWrite(nil)
	world.Seen().ThawCache()
	if p.impossible != nil || err == nil && disturbed && p.unmet(i) {
		return errImpossible
	}
	return err
}

// unmet reports whether something of the schedule has not happened: the step had fewer writes than it has undisturbed.
func (p *playedTest) unmet(i int) bool {
	return p.session.World().Seen().Pending().String() != "" || p.early > 0 && i+1 < len(p.steps) && !p.begun
}

// beginNextAfter lets the next step begin after the planned write of this one.
func (p *playedTest) beginNextAfter(i int) {
	if p.early == 0 {
		return
	}
	p.session.World().AfterWrite(func() {
		if p.begun || p.session.World().Seen().Writes() != p.early {
			return
		}
		p.begun = true
		p.sayf("step %d begins", i+1)
		p.impossible = p.change(p.steps[i+1])
	})
}

// rest lets the operator act until it rests. If it dies and stays away, that is the end of the step.
func (p *playedTest) rest(ctx context.Context, disturbed bool) error {
	world := p.session.World()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	restarts, gone := world.Restarts(), false
	if disturbed {
		if err := catchUp(ctx, world, p.frozen, p.note); err != nil {
			return err
		}
	}
	err := world.Run(inner, func(s dryrun.Step) {
		p.note(s)
		if disturbed && p.away && world.Restarts() > restarts {
			gone = true
			stop()
		}
	})
	if gone && ctx.Err() == nil {
		return nil
	}
	return err
}

// note adds a reconcile to the trace.
func (p *playedTest) note(s dryrun.Step) {
	var what []string
	for _, c := range s.Changes {
		what = append(what, c.Change.String())
	}
	text := "reconcile: " + strings.Join(what, ", ")
	if len(what) == 0 {
		text = "reconcile: no object"
	}
	if s.Err != nil {
		text += "; it fails"
	}
	p.sayf("%s", text)
}

func (p *playedTest) sayf(format string, args ...any) {
	p.trace = append(p.trace, fmt.Sprintf(format, args...))
}
