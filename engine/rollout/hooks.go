package rollout

import (
	"context"
	"errors"
	"strings"

	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// afterDeploy runs the hooks that follow the deploy phase: those of success when
// every component was applied, those of failure when one has failed. While
// components merely wait, neither is the case.
func (r *run) afterDeploy(ctx context.Context) error {
	switch {
	case r.anyIn(status.Failed):
		return r.runHooks(ctx, program.AfterDeployUnsuccessful)
	case !r.anyIn(status.Waiting, status.Held):
		return r.runHooks(ctx, program.AfterDeploy)
	}
	return nil
}

// afterVerify runs the hooks that follow the verify phase: those of success when
// every component and the hooks before are verified, those of failure when a
// component has failed.
func (r *run) afterVerify(ctx context.Context) error {
	switch {
	case r.anyIn(status.Failed):
		return r.runHooks(ctx, program.AfterVerifyUnsuccessful)
	case !r.anyIn(status.Waiting, status.Held, status.Applied):
		return r.runHooks(ctx, program.AfterVerify)
	}
	return nil
}

// anyIn reports whether an outcome has one of some states.
func (r *run) anyIn(states ...status.State) bool {
	for _, o := range r.outcomes {
		for _, s := range states {
			if o.State == s {
				return true
			}
		}
	}
	return false
}

// runHooks runs the hooks of a phase, each once for its content.
func (r *run) runHooks(ctx context.Context, phase program.Phase) error {
	for _, h := range r.rollout.Hooks {
		if h.Phase != phase {
			continue
		}
		if err := r.runHook(ctx, h.Component); err != nil {
			return err
		}
	}
	return nil
}

// runHook applies a hook's objects under names that say their content, and notes
// how it ended. One that has ended with this content is not run again, also when
// its objects are gone since; one that failed is, once they are.
func (r *run) runHook(ctx context.Context, c program.Component) error {
	switch {
	case c.When.Verdict == program.False:
		return nil
	case c.Rendering == program.RenderedInvalid:
		r.outcomes[c.Name] = failed(c.Name, status.ReasonInvalidObject, oneLine(c.Faults.Error()))
		return nil
	case c.Rendering == program.RenderedIncomplete:
		r.outcomes[c.Name] = waiting(c.Name, status.ReasonValue, "waiting for "+strings.Join(c.Missing, "; "))
		return nil
	}
	named, digest, err := plan.ByContent(c)
	if err != nil {
		r.outcomes[c.Name] = failed(c.Name, status.ReasonInvalidObject, err.Error())
		return nil
	}
	if done, ok := r.finished[c.Name]; ok && done.Digest == digest && (done.State == status.Verified || r.exists(ctx, named)) {
		r.stamp(ctx, named) // what it left is wanted, and not pruned
		r.outcomes[c.Name] = hookOutcome(c.Name, done.State, "it failed; delete its objects to run it again, or change it")
		return nil
	}
	return r.performHook(ctx, named, digest)
}

// exists reports whether any of a hook's objects is there.
func (r *run) exists(ctx context.Context, c program.Component) bool {
	for _, o := range c.Objects {
		u, err := r.Cluster.Get(ctx, r.refOf(ctx, o))
		if err == nil && u != nil {
			return true
		}
	}
	return false
}

// performHook applies a hook and judges it.
func (r *run) performHook(ctx context.Context, c program.Component, digest string) error {
	var entries []plan.Entry
	for _, o := range c.Objects {
		entries = append(entries, plan.EntryOf(o, r.in.Owner.Namespace, r.scopeOf(ctx, o)))
	}
	r.outcomes[c.Name] = status.Component{Name: c.Name, State: status.Applied, Reason: status.ReasonHooksRunning, Message: "being run"}
	if err := r.guard(ctx, r.inventory.With(c.Name, nil, entries)); err != nil {
		return err
	}
	delete(r.outcomes, c.Name)
	if r.stamp(ctx, c); r.outcomes[c.Name].Name != "" {
		return nil
	}
	if _, err := r.look(ctx, r.placesOf(ctx, c)); err != nil {
		return err
	}
	r.collect([]string{c.Name}, []application{r.apply(ctx, r.desired[c.Name], c, false)})
	if r.outcomes[c.Name].Name != "" {
		return nil
	}
	o := r.judge(c)
	if o.State == status.Verified || o.State == status.Failed {
		if r.finished == nil {
			r.finished = map[string]Finish{}
		}
		r.finished[c.Name] = Finish{Digest: digest, State: o.State}
	}
	r.outcomes[c.Name] = hookOutcome(c.Name, o.State, o.Message)
	return nil
}

func (r *run) placesOf(ctx context.Context, c program.Component) []place {
	var out []place
	for _, o := range c.Objects {
		out = append(out, place{c.Name, o.Name, r.refOf(ctx, o)})
	}
	return out
}

// hookOutcome is the outcome of a hook in a state.
func hookOutcome(name string, s status.State, message string) status.Component {
	switch s {
	case status.Verified:
		return status.Component{Name: name, State: s, Reason: status.ReasonVerified}
	case status.Failed:
		return failed(name, status.ReasonHookFailed, message)
	case status.Applied, status.Waiting, status.Excluded, status.Held, status.Deleting:
	}
	return status.Component{Name: name, State: status.Applied, Reason: status.ReasonHooksRunning, Message: message}
}

// BeforeDelete runs the hooks that come before the first object of a deleted
// resource goes. Done in the result's completion says whether the objects may go
// now. A package that cannot be evaluated has no hooks: they must not keep a
// resource for ever.
func (e *Engine) BeforeDelete(ctx context.Context, in Input) (result Result, done bool, err error) {
	r := newRun(e, in)
	r.through(ctx, r.observe, r.evaluate, r.decide)
	if r.result.Completion.Fault.Reason != "" {
		return Result{
			Inventory: in.Inventory, Finished: in.Finished,
			Events: []Event{{Reason: "HooksSkipped", Warning: true, Message: "The hooks before deletion were skipped: " + r.result.Completion.Fault.Message}},
		}, true, nil
	}
	r.desired = map[string][]plan.Desired{}
	if err := r.runHooks(ctx, program.BeforeDelete); err != nil {
		r.failures = append(r.failures, err)
	}
	done = len(r.failures) == 0 && !r.anyIn(status.Failed, status.Applied, status.Waiting)
	out := r.finish()
	out.Completion.Deleting = true
	return out, done, errors.Join(r.failures...)
}
