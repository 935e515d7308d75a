package rollout

import (
	"context"
	"errors"
	"slices"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// A Predictor is an Evaluator that may know what Evaluate would return before anything has confirmed it.
type Predictor interface {
	// Predict returns what Evaluate would probably return, or false if that is not known, or if Evaluate itself
	// would return nothing more. It costs little. Nothing may be written because of it.
	Predict(program.Session) (program.Rollout, bool)
}

// errUnknown is the error of an evaluation of which no prediction is known.
var errUnknown = errors.New("it is not known what the package says")

// A predicted is an Evaluator that returns what a Predictor does.
type predicted struct{ Predictor }

// Evaluate implements Evaluator.
func (p predicted) Evaluate(s program.Session) (program.Rollout, error) {
	out, known := p.Predict(s)
	if !known {
		return program.Rollout{}, &program.UnavailableError{Err: errUnknown}
	}
	return out, nil
}

// CheckInSync returns what Run would return if everything is in sync with what the package predicts, and whether that
// is so. A process that has just started thereby evaluates nothing for a resource that has nothing to do. CheckInSync
// writes nothing: Run decides about every other resource.
func (e *Engine) CheckInSync(ctx context.Context, in Input) (Result, bool) {
	p, ok := e.Package.(Predictor)
	if !ok || in.Inventory.Len() == 0 || len(in.HookStates) > 0 || len(in.Patches) > 0 || in.Requested {
		return Result{}, false
	}
	predicting := *e
	predicting.Package = predicted{p}
	r := newRun(ctx, &predicting, in)
	if r.runUntilFault(ctx, r.readOnlyPhases()...); r.stopped() || !r.allInSync() {
		return Result{}, false
	}
	if r.runUntilFault(ctx, r.deploy); r.stopped() || len(r.unwanted(ctx)) > 0 {
		return Result{}, false
	}
	r.watchInputs()
	out := r.finish()
	return out, len(r.failures) == 0 && len(out.Events) == 0 && out.Completion.Ready()
}

// stopped reports whether a phase has failed.
func (r *run) stopped() bool { return len(r.failures) > 0 || !r.result.Completion.Fault.IsZero() }

// allInSync reports whether nothing is to be written before objects are pruned: each component that should exist is
// complete, and its objects are there as they should be.
func (r *run) allInSync() bool {
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
		return live == nil || ownership.Decide(d, live, r.in.Owner).Decision != ownership.Keep
	})
}
