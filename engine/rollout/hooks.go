package rollout

import (
	"context"
	"slices"
	"strings"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// hooks decides which hooks run, and knows how they ended.
type hooks struct {
	*progress
	states HookStates
}

// afterDeploy runs the hooks that follow the deploy phase.
func (r *run) afterDeploy(ctx context.Context) error { return r.runHooks(ctx, r.phaseAfterDeploy()) }

// afterVerify runs the hooks that follow the verify phase.
func (r *run) afterVerify(ctx context.Context) error { return r.runHooks(ctx, r.phaseAfterVerify()) }

// noPhase is the phase of no hook.
const noPhase program.HookPhase = ""

// phaseAfterDeploy returns which hooks follow the deploy phase: those of success when every
// component was applied, those of failure when one could not be. While components merely
// wait, none do.
func (hk *hooks) phaseAfterDeploy() program.HookPhase {
	switch {
	case hk.anyFailed(func(component string) bool { return !hk.judged[component] }):
		return program.AfterDeployUnsuccessful
	case !hk.anyIn(status.Waiting, status.Held, status.Retrying):
		return program.AfterDeploy
	}
	return noPhase
}

// phaseAfterVerify returns which hooks follow the verify phase: those of success when every
// component and the hooks before are verified, those of failure when a component that was
// applied has failed or timed out.
func (hk *hooks) phaseAfterVerify() program.HookPhase {
	hk.checkTimeouts()
	switch {
	case hk.anyFailed(func(component string) bool { return hk.judged[component] }):
		return program.AfterVerifyUnsuccessful
	case !hk.anyIn(status.Failed, status.Waiting, status.Held, status.Applied, status.Retrying):
		return program.AfterVerify
	}
	return noPhase
}

// checkTimeouts fails the components that have timed out.
func (pr *progress) checkTimeouts() {
	if pr.in.CheckTimeout == nil {
		return
	}
	for _, c := range pr.rollout.Components {
		o, ok := pr.outcomes[c.Name]
		if o.Timeout = c.Timeout; !ok {
			continue
		}
		if late := pr.in.CheckTimeout(o); late.Reason == status.ReasonTimedOut {
			pr.outcomes[c.Name] = late
			pr.judged[c.Name] = true
		}
	}
}

// runHooks runs the hooks of a phase, each once for its content.
func (r *run) runHooks(ctx context.Context, phase program.HookPhase) error {
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

// runHook applies the objects of a hook that is due, and keeps how it ended.
func (r *run) runHook(ctx context.Context, hook program.Component) error {
	c, digest, due := r.decideHook(ctx, hook)
	if !due {
		return nil
	}
	r.outcomes[c.Name] = hookOutcome(c.Name, status.Applied, "being run")
	if err := r.storeBeforeWrite(ctx, r.inventory.With(c.Name, nil, r.entries(ctx, c))); err != nil {
		return err
	}
	delete(r.outcomes, c.Name)
	if r.stamp(ctx, c); r.outcomes[c.Name].Name != "" {
		return nil
	}
	if _, err := r.look(ctx, r.placesOf(ctx, c)); err != nil {
		return err
	}
	r.collect(c.Name, r.applier().apply(ctx, r.desired[c.Name], c, false))
	if r.outcomes[c.Name].Name != "" {
		return nil
	}
	o := r.judgeHook(ctx, c)
	delete(r.states, c.Name)
	if o.State == status.Verified || o.State == status.Failed {
		r.states[c.Name] = HookState{Digest: digest, State: o.State}
	}
	r.outcomes[c.Name] = o
	return nil
}

// decideHook returns a hook with objects named by their content, with the digest of that
// content, and whether the hook is due. A hook that has succeeded with this content is not,
// although its objects may be gone; a hook that failed is due again once they are.
func (hk *hooks) decideHook(ctx context.Context, c program.Component) (program.Component, string, bool) {
	if why, off := program.Excluded([]program.Component{c}, nil)[c.Name]; off {
		hk.excluded[c.Name] = why
		return c, "", false
	}
	if blocked, closed := hk.gateHook(c); closed {
		hk.outcomes[c.Name] = blocked
		return c, "", false
	}
	named, digest, err := hk.named(ctx, c)
	if err != nil {
		hk.outcomes[c.Name] = failed(c.Name, status.ReasonInvalidObject, err.Error())
		return c, "", false
	}
	if done, ok := hk.states[c.Name]; ok && done.Digest == digest && done.State == status.Verified {
		hk.stamp(ctx, named) // or its objects would be pruned
		hk.outcomes[c.Name] = hookOutcome(c.Name, done.State, "")
		return c, "", false
	}
	return named, digest, true
}

// named returns a hook with objects named by their content, and the digest of that content.
// Operators of earlier versions made both without the keys of Secrets. A hook that has run or
// is running under such names must not run again for the keys. A hook that renders a Secret
// keeps those names until its content changes: its key would be lost with that Secret.
func (hk *hooks) named(ctx context.Context, c program.Component) (program.Component, string, error) {
	key := hk.keyOfHook(c)
	named, digest, err := ownership.NamedByContent(c, key)
	if key == "" || err != nil {
		return named, digest, err
	}
	before, plain, err := ownership.NamedByContent(c, "")
	if err != nil {
		return named, digest, err
	}
	if done := hk.states[c.Name]; done.Digest == plain && done.State == status.Verified && !slices.ContainsFunc(c.Objects, mayBeSecret) {
		hk.states[c.Name] = HookState{Digest: digest, State: done.State}
		return named, digest, nil
	}
	for _, o := range before.Objects {
		if _, _, runs := hk.inventory.Find(hk.refOf(ctx, o), hk.in.Owner.Namespace); runs {
			return before, plain, nil
		}
	}
	return named, digest, nil
}

// gateHook is gate for a hook, which has no edges: it waits for its phase.
func (hk *hooks) gateHook(c program.Component) (status.Component, bool) {
	delete(hk.outcomes, c.Name)
	return firstBlocking(c, hk.gateExistence, hk.gateFaults, hk.gateRequirements, hk.gateRendering)
}

// judgeHook returns the outcome of a hook whose objects were applied.
func (hk *hooks) judgeHook(ctx context.Context, c program.Component) status.Component {
	o := hk.judge(ctx, c)
	if o.State == status.Failed {
		var objects []string
		for _, p := range hk.placesOf(ctx, c) {
			objects = append(objects, p.ref.String())
		}
		o.Message += "; delete " + strings.Join(objects, ", ") + " to run the hook again, or change the hook"
	}
	return hookOutcome(c.Name, o.State, o.Message)
}

func (hk *hooks) placesOf(ctx context.Context, c program.Component) []place {
	var out []place
	for _, o := range c.Objects {
		out = append(out, place{c.Name, o.Name, hk.refOf(ctx, o)})
	}
	return out
}

// hookStates returns how the hooks have ended, and as Waiting those that are still to run
// before deletion, which an undecided when may turn out to need. A hook that the package no
// longer has is forgotten, and runs again if it comes back.
func (hk *hooks) hookStates() HookStates {
	if hk.graph == nil {
		return hk.states // without an evaluation it is not known which hooks the package has
	}
	due := map[string]bool{}
	for _, h := range hk.rollout.Hooks {
		due[h.Component.Name] = h.Phase == program.BeforeDelete && h.Component.When.Verdict != program.False
	}
	out := HookStates{}
	for name, f := range hk.states {
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
