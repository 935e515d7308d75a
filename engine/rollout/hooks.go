package rollout

import (
	"context"
	"slices"
	"strings"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// afterDeploy runs the hooks that follow the deploy phase.
func (r *run) afterDeploy(ctx context.Context) error {
	phase, come := r.phaseAfterDeploy()
	if !come {
		return nil
	}
	return r.runHooks(ctx, phase)
}

// phaseAfterDeploy returns the hooks that follow the deploy phase: those of success when
// every component was applied, those of failure when one could not be. While
// components merely wait, neither is the case.
func (r *run) phaseAfterDeploy() (program.Phase, bool) {
	switch {
	case r.anyFailed(func(component string) bool { return !r.judged[component] }):
		return program.AfterDeployUnsuccessful, true
	case !r.anyIn(status.Waiting, status.Held, status.Retrying):
		return program.AfterDeploy, true
	}
	return "", false
}

// afterVerify runs the hooks that follow the verify phase.
func (r *run) afterVerify(ctx context.Context) error {
	phase, come := r.phaseAfterVerify()
	if !come {
		return nil
	}
	return r.runHooks(ctx, phase)
}

// phaseAfterVerify returns the hooks that follow the verify phase: those of success when
// every component and the hooks before are verified, those of failure when a
// component that was applied has failed, or one was not ready in time.
func (r *run) phaseAfterVerify() (program.Phase, bool) {
	r.expire()
	switch {
	case r.anyFailed(func(component string) bool { return r.judged[component] }):
		return program.AfterVerifyUnsuccessful, true
	case !r.anyIn(status.Failed, status.Waiting, status.Held, status.Applied, status.Retrying):
		return program.AfterVerify, true
	}
	return "", false
}

// expire finds the components that have had their time.
func (r *run) expire() {
	if r.in.CheckTimeout == nil {
		return
	}
	for _, c := range r.rollout.Components {
		o, ok := r.outcomes[c.Name]
		if o.Timeout = c.Timeout; !ok {
			continue
		}
		if late := r.in.CheckTimeout(o); late.Reason == status.ReasonTimedOut {
			r.outcomes[c.Name] = late
			r.judged[c.Name] = true
		}
	}
}

// anyFailed reports whether one of some components has failed.
func (r *run) anyFailed(which func(component string) bool) bool {
	for name, o := range r.outcomes {
		if o.State == status.Failed && r.graph.Has(name) && which(name) {
			return true
		}
	}
	return false
}

// anyIn reports whether an outcome has one of some states.
func (r *run) anyIn(states ...status.State) bool {
	for _, o := range r.outcomes {
		if slices.Contains(states, o.State) {
			return true
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

// runHook applies a hook's objects under names that say its content, and notes
// how it ended.
func (r *run) runHook(ctx context.Context, c program.Component) error {
	named, digest, due := r.decideHook(ctx, c)
	if !due {
		return nil
	}
	return r.performHook(ctx, named, digest)
}

// decideHook returns a hook under names that say its content, with the digest of that, and
// whether it is to be run. One that has succeeded with this content is not run again, also
// when its objects are gone since; one that failed is, once they are.
func (r *run) decideHook(ctx context.Context, c program.Component) (program.Component, string, bool) {
	if why, off := program.Excluded([]program.Component{c}, nil)[c.Name]; off {
		r.excluded[c.Name] = why
		return c, "", false
	}
	if blocked, closed := r.gateHook(c); closed {
		r.outcomes[c.Name] = blocked
		return c, "", false
	}
	named, digest, err := r.named(ctx, c)
	if err != nil {
		r.outcomes[c.Name] = failed(c.Name, status.ReasonInvalidObject, err.Error())
		return c, "", false
	}
	if done, ok := r.finished[c.Name]; ok && done.Digest == digest && done.State == status.Verified {
		r.stamp(ctx, named) // what it left is wanted, and not pruned
		r.outcomes[c.Name] = hookOutcome(c.Name, done.State, "")
		return c, "", false
	}
	return named, digest, true
}

// named returns a hook with names that say its content, and the digest of that. One that
// rests on a Secret and was run before there were keys is not run again for its new
// names, nor while it runs under those of before. One that has a Secret keeps those until
// its content changes, as the key would go with that Secret.
func (r *run) named(ctx context.Context, c program.Component) (program.Component, string, error) {
	key := r.keyOfHook(c)
	named, digest, err := ownership.ByContent(c, key)
	if key == "" || err != nil {
		return named, digest, err
	}
	before, plain, err := ownership.ByContent(c, "")
	if err != nil {
		return named, digest, err
	}
	if done := r.finished[c.Name]; done.Digest == plain && done.State == status.Verified && !slices.ContainsFunc(c.Objects, isSecret) {
		r.finished[c.Name] = HookState{Digest: digest, State: done.State}
		return named, digest, nil
	}
	for _, o := range before.Objects {
		if _, _, runs := r.inventory.Find(r.refOf(ctx, o), r.in.Owner.Namespace); runs {
			return before, plain, nil
		}
	}
	return named, digest, nil
}

// gateHook asks of a hook what is asked of a component, but for its edges: its
// phase is what it waits for.
func (r *run) gateHook(c program.Component) (status.Component, bool) {
	delete(r.outcomes, c.Name)
	for _, ask := range []func(program.Component) (status.Component, bool){
		r.gateExistence, r.gateFaults, r.gateRequirements, r.gateRendering,
	} {
		if blocked, ok := ask(c); ok {
			return blocked, true
		}
	}
	return status.Component{}, false
}

// remains names the objects of a hook.
func (r *run) remains(ctx context.Context, c program.Component) string {
	names := make([]string, len(c.Objects))
	for i, o := range c.Objects {
		names[i] = r.refOf(ctx, o).String()
	}
	return strings.Join(names, ", ")
}

// performHook applies a hook and judges it.
func (r *run) performHook(ctx context.Context, c program.Component, digest string) error {
	r.outcomes[c.Name] = status.Component{Name: c.Name, State: status.Applied, Reason: status.ReasonHooksRunning, Message: "being run"}
	if err := r.recordBeforeWrite(ctx, r.inventory.With(c.Name, nil, r.entries(ctx, c))); err != nil {
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
	o := r.judgeHook(ctx, c)
	delete(r.finished, c.Name)
	if o.State == status.Verified || o.State == status.Failed {
		if r.finished == nil {
			r.finished = map[string]HookState{}
		}
		r.finished[c.Name] = HookState{Digest: digest, State: o.State}
	}
	r.outcomes[c.Name] = o
	return nil
}

// judgeHook returns the outcome of a hook whose objects were applied.
func (r *run) judgeHook(ctx context.Context, c program.Component) status.Component {
	o := r.judge(ctx, c)
	if o.State == status.Failed {
		o.Message += "; delete " + r.remains(ctx, c) + " to run the hook again, or change the hook"
	}
	return hookOutcome(c.Name, o.State, o.Message)
}

func (r *run) placesOf(ctx context.Context, c program.Component) []place {
	var out []place
	for _, o := range c.Objects {
		out = append(out, place{c.Name, o.Name, r.refOf(ctx, o)})
	}
	return out
}

// hooksSoFar returns the hooks that have run, and as Waiting those that are still to
// run before deletion. One whose when is not decided may have to. One that the package
// has no more is forgotten: if it comes back, it runs again.
func (r *run) hooksSoFar() map[string]HookState {
	if r.graph == nil {
		return r.finished // which hooks there are is not known
	}
	due := map[string]bool{}
	for _, h := range r.rollout.Hooks {
		due[h.Component.Name] = h.Phase == program.BeforeDelete && h.Component.When.Verdict != program.False
	}
	out := map[string]HookState{}
	for name, f := range r.finished {
		if isDue, rendered := due[name]; rendered && (isDue || f.State != status.Waiting) {
			out[name] = f
		}
	}
	for name, isDue := range due {
		if _, known := out[name]; isDue && !known {
			out[name] = HookState{State: status.Waiting}
		}
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
	case status.Applied, status.Waiting, status.Retrying, status.Excluded, status.Held, status.Deleting:
	}
	return status.Component{Name: name, State: status.Applied, Reason: status.ReasonHooksRunning, Message: message}
}
