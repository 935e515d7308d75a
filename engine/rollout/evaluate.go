package rollout

import (
	"context"
	"errors"
	"slices"
	"time"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/graph"
	"operetta.dev/engine/object"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// evaluated is what the package says of the resource and of what was observed.
type evaluated struct {
	*observed
	rollout program.Rollout
	// byName are the components and hooks of the rollout.
	byName map[string]program.Component
	// patched are what this evaluation has made of the patches.
	patched []patch.Report
	// retryPatches is when to try a patch again whose kind is not served, or 0.
	retryPatches time.Duration
	graph        *graph.Graph[string, program.Edge]
	excluded     map[string]string
}

// maxRounds bounds how often one evaluation may reveal more. Each round but the last
// finds the objects of at least one component.
const maxRounds = 100

// evaluate evaluates the package until that reveals nothing new to observe: objects that
// exist already (after a lost status, the first evaluation knows none), and inputs, which
// the resource may name. An evaluation that failed without them may succeed with them.
func (ev *evaluated) evaluate(ctx context.Context) error {
	var before program.Rollout
	for range maxRounds {
		before = ev.rollout
		undecided := ev.evaluateOnce(ctx)
		if undecided != nil && len(ev.rollout.Inputs) == 0 {
			return undecided
		}
		found, err := ev.discover(ctx)
		if err != nil {
			return err
		}
		read, err := ev.readInputs(ctx, ev.rollout.Inputs)
		if err != nil {
			return err
		}
		if !ev.updateFinished(ctx) && !found && !read {
			return undecided
		}
	}
	return stopAt(renamed(before, ev.rollout), status.ReasonInvalidPackage, "the rendered identities keep changing with what is observed; an object's name must not depend on that object")
}

// renamed returns the position of the first object to which two evaluations give different identities.
func renamed(before, after program.Rollout) fault.Position {
	identities := map[[2]string]object.Ref{}
	for _, c := range before.Components {
		for _, o := range c.Objects {
			identities[[2]string{c.Name, o.Name}] = o.Identity
		}
	}
	for _, c := range after.Components {
		for _, o := range c.Objects {
			if identities[[2]string{c.Name, o.Name}] != o.Identity {
				return o.Position
			}
		}
	}
	return fault.Position{}
}

// evaluateAnswers evaluates the package over what the API server has answered, and over the inputs that
// it names as a result. Inputs that cannot be read now are left to the next rollout, which the events of
// the written objects cause.
func (ev *evaluated) evaluateAnswers(ctx context.Context) error {
	for range maxRounds {
		if err := ev.evaluateOnce(ctx); err != nil {
			return err
		}
		if read, err := ev.readInputs(ctx, ev.rollout.Inputs); err != nil || !read {
			return nil //nolint:nilerr // see above
		}
	}
	return nil
}

// evaluateOnce evaluates the package over what is observed now, and applies the patches.
func (ev *evaluated) evaluateOnce(ctx context.Context) error {
	_, span := startSpan(ctx, "evaluate")
	out, err := ev.Package.Evaluate(ev.session())
	endSpan(span, err != nil)
	ev.use.failed = true // until it has succeeded as a whole
	if err != nil {
		ev.rollout.Inputs = out.Inputs
		return evaluationError(err)
	}
	ev.rollout = out
	ev.index()
	switch {
	case len(out.Invalid) > 0:
		return stop(status.ReasonInvalidSpec, out.Invalid.Error())
	case len(out.Misconfigured) > 0:
		return stop(status.ReasonInvalidConfig, out.Misconfigured.Error())
	}
	if err := ev.patch(ctx); err != nil {
		return err
	}
	ev.index()
	ev.teachRedactor()
	ev.use.failed = false
	return nil
}

// evaluationError returns an evaluation without a result as a stopError. An evaluation that
// has failed is not retried, as its result depends on the package and the resource alone. If nothing was evaluated, it is retried.
func evaluationError(err error) error {
	if _, ok := errors.AsType[*program.UnavailableError](err); ok {
		return err
	}
	if panicked, ok := errors.AsType[*program.PanicError](err); ok {
		return &stopError{fault: failed("", status.ReasonEvaluationFailed, joinLines(err.Error())), detail: string(panicked.Stack)}
	}
	if limit, over := errors.AsType[*program.LimitError](err); over {
		reason := status.ReasonEvaluationLimit
		if limit.TooSlow {
			reason = status.ReasonEvaluationTooSlow
		}
		return stop(reason, limit.Error())
	}
	if undecided, is := errors.AsType[*program.UndecidedError](err); is && len(undecided.Faults) > 0 {
		return stopAt(undecided.Faults[0].Position, status.ReasonInvalidPackage, err.Error())
	}
	return stop(status.ReasonInvalidPackage, err.Error())
}

// teachRedactor adds the rendered Secrets to the redactor, and allows the names of what is
// rendered in messages.
func (ev *evaluated) teachRedactor() {
	for _, c := range ev.everything() {
		ev.in.Redactor.AllowNames(c.Name)
		for _, o := range c.Objects {
			if !o.NamedBySecret { // a user who has not chosen such a name learns nothing from a gap
				ev.in.Redactor.AllowNames(o.Name, o.Identity.Kind, o.Identity.Name, o.Identity.Namespace)
			}
			ev.in.Redactor.Add(o.Manifest)
		}
	}
}

// discover reads the rendered objects that were not read yet, or under another identity:
// a renamed object is another object. It reports whether the package sees more as a result.
func (ev *evaluated) discover(ctx context.Context) (bool, error) {
	var places []place
	for _, c := range ev.rollout.Components {
		for _, o := range c.Objects {
			known := ev.live[c.Name][o.Name]
			ref := ev.refOf(ctx, o)
			if o.Identity.Known() && (known == nil || cluster.RefOf(known).Identity() != ref.Identity()) {
				places = append(places, place{c.Name, o.Name, ref})
			}
		}
	}
	return ev.look(ctx, places)
}

// everything returns the components and then the hooks.
func (ev *evaluated) everything() []program.Component {
	out := slices.Clip(ev.rollout.Components)
	for _, h := range ev.rollout.Hooks {
		out = append(out, h.Component)
	}
	return out
}

// index makes byName. Of two of a name the first counts.
func (ev *evaluated) index() {
	ev.byName = make(map[string]program.Component, len(ev.rollout.Components))
	for _, c := range ev.everything() {
		if _, twice := ev.byName[c.Name]; !twice {
			ev.byName[c.Name] = c
		}
	}
}

// component returns a component or a hook by its name.
func (ev *evaluated) component(name string) (program.Component, bool) {
	c, ok := ev.byName[name]
	return c, ok
}

// ownStatus returns the author's status fields, or nil when nothing was evaluated.
func (ev *evaluated) ownStatus() map[string]any {
	switch {
	case ev.graph == nil:
		return nil
	case ev.rollout.Status == nil:
		return map[string]any{}
	}
	return ev.rollout.Status
}

// statusFault returns what is wrong with the author's status fields, if anything is.
func (ev *evaluated) statusFault() status.Component {
	switch {
	case len(ev.rollout.StatusFaults) > 0:
		return failed("", status.ReasonInvalidPackage, ev.rollout.StatusFaults.Error())
	case ev.rollout.Unstored != "":
		return failed("", status.ReasonStatusTooLarge, ev.rollout.Unstored)
	}
	return status.Component{}
}
