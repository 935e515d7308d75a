package rollout

import (
	"context"
	"errors"
	"slices"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// A Foreteller is an Evaluator that may know what Evaluate would return before anything has confirmed it.
type Foreteller interface {
	// Foretell returns what Evaluate would probably return, or false if that is not known, or if Evaluate would
	// return no more than that itself. It costs little. Nothing may be written because of it.
	Foretell(program.Session) (program.Rollout, bool)
}

// errUnknown is the error of an evaluation that nobody foretells.
var errUnknown = errors.New("it is not known what the package says")

// A foretold is an Evaluator that returns what a Foreteller does.
type foretold struct{ Foreteller }

// Evaluate implements Evaluator.
func (f foretold) Evaluate(s program.Session) (program.Rollout, error) {
	out, known := f.Foretell(s)
	if !known {
		return program.Rollout{}, &program.UnavailableError{Err: errUnknown}
	}
	return out, nil
}

// Rest returns what Run would return if there is nothing to do by what the package foretells, and whether that is so.
// A process that has just started learns in that way that a resource is at rest, and evaluates nothing for it. It
// writes nothing: Run decides about whatever is not at rest.
func (e *Engine) Rest(ctx context.Context, in Input) (Result, bool) {
	f, ok := e.Package.(Foreteller)
	if !ok || in.Inventory.Len() == 0 || len(in.HookStates) > 0 || len(in.Patches) > 0 || in.Requested {
		return Result{}, false
	}
	foretelling := *e
	foretelling.Package = foretold{f}
	r := newRun(&foretelling, in)
	if r.through(ctx, r.readOnlyPhases()...); r.stopped() || !r.rests() {
		return Result{}, false
	}
	if r.through(ctx, r.deploy); r.stopped() || len(r.unwanted(ctx)) > 0 {
		return Result{}, false
	}
	r.watchInputs()
	out := r.finish()
	return out, len(r.failures) == 0 && len(out.Events) == 0 && out.Completion.Ready()
}

// stopped reports whether a phase has failed.
func (r *run) stopped() bool { return len(r.failures) > 0 || !r.result.Completion.Fault.IsZero() }

// rests reports whether nothing is to be written before objects are pruned: each component that should exist is
// complete, and its objects are there as they should be.
func (r *run) rests() bool {
	if len(r.rollout.Hooks) > 0 || !r.grown.Equal(r.inventory) {
		return false
	}
	return !slices.ContainsFunc(r.rollout.Components, func(c program.Component) bool {
		_, excluded := r.excluded[c.Name]
		return !excluded && !r.isThere(c)
	})
}

// isThere reports whether a component is complete, and its objects are there as they should be.
func (r *run) isThere(c program.Component) bool {
	_, decided := r.outcomes[c.Name]
	want := r.desired[c.Name]
	if decided || c.When.Verdict != program.True || c.Rendering != program.RenderedComplete || len(want) != len(c.Objects) {
		return false
	}
	return !slices.ContainsFunc(want, func(d ownership.Desired) bool {
		live := r.live[c.Name][d.Object]
		return live == nil || ownership.Decide(d, live, r.in.Owner).Verb != ownership.Keep
	})
}
