package rollout

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// A Decision is what a rollout would do, as far as that is known before its first write: what the
// API server returns for one layer may allow the next.
type Decision struct {
	// Fault is what is wrong with the resource or the package as a whole. No component is decided
	// then, unless the fault is about the status fields only.
	Fault status.Component
	// Rollout is the result of the last evaluation, with the patches.
	Rollout program.Rollout
	// Components are in the order of dependencies, followed by the hooks whose phase has come.
	Components []DecidedComponent
	// Patches are the results of the patches.
	Patches []patch.Report
}

// A DecidedComponent is a component and what a rollout would do about it.
type DecidedComponent struct {
	// Component is what the status would say.
	status.Component
	// Source is the component as it was evaluated.
	Source program.Component
	// Objects are in the order in which they are written. There are none while one of them is
	// incomplete or invalid.
	Objects []DecidedObject
}

// A DecidedObject is a desired object and what a rollout would do about it.
type DecidedObject struct {
	ownership.Desired
	// Live is the object as it was observed, or nil.
	Live *unstructured.Unstructured
	// Action has no Verb while the component waits.
	Action ownership.Action
}

// Decide returns what Run would do now, and writes nothing: of what Run would write first, it
// asks the cluster by dry runs. It errors when the cluster does not answer; the Decision is
// valid then, too.
func (e *Engine) Decide(ctx context.Context, in Input) (Decision, error) {
	r := newRun(e, in)
	r.through(ctx, r.readOnlyPhases()...)
	out := Decision{Fault: r.result.Completion.Fault, Rollout: r.rollout}
	if out.Fault.IsZero() && r.graph != nil {
		steps := map[string][]step{}
		r.forecast(ctx, func(ctx context.Context, c program.Component) status.Component {
			outcome, all := r.forecastApply(ctx, c)
			steps[c.Name] = all
			return outcome
		})
		r.forecastHooks(ctx)
		out.Patches = r.patchReports()
		out.Components = r.decided(ctx, steps)
		out.Fault = r.statusFault()
	}
	return out, errors.Join(r.failures...)
}

// forecast gives each component the outcome that it has before anything is written, unless it
// has been judged. For a component that may be applied, apply returns it.
func (pr *progress) forecast(ctx context.Context, apply func(context.Context, program.Component) status.Component) {
	order, _ := pr.graph.Order()
	for _, name := range order {
		if pr.judged[name] {
			continue
		}
		c, _ := pr.component(name)
		if blocked, closed := pr.gate(c); closed {
			pr.outcomes[name] = pr.untouched(ctx, c, blocked)
		} else {
			pr.outcomes[name] = apply(ctx, c)
		}
	}
}

// inProgress is the outcome of a component that is about to be written.
func inProgress(name string) status.Component {
	return status.Component{Name: name, State: status.Applied, Reason: status.ReasonProgressing, Message: "being applied"}
}

// forecastApply returns the outcome of a component that may be applied, and what apply would
// do about its objects.
func (pr *progress) forecastApply(ctx context.Context, c program.Component) (status.Component, []step) {
	ap := pr.applier()
	steps, blocked := ap.steps(ctx, pr.desired[c.Name], c, false)
	if blocked.outcome.Name != "" {
		return blocked.outcome, steps
	}
	if refused := ap.dryRun(ctx, steps, 0).concluded(c.Name).outcome; refused.Name != "" {
		return refused, steps
	}
	if awaited, ok := pr.awaited[c.Name]; ok {
		return waiting(c.Name, status.ReasonKindNotServed, awaited), steps
	}
	for _, s := range steps {
		if d := ap.delayOf(s.want, needOf(s.action.Verb)); d.Times > 0 {
			return keepsChanging(s, d), steps
		}
	}
	if slices.ContainsFunc(steps, step.writes) {
		return inProgress(c.Name), steps
	}
	pr.judged[c.Name] = true
	return pr.judge(ctx, c), steps
}

// forecastHooks gives the hooks whose phase has come the outcome that they have before
// anything is written.
func (hk *hooks) forecastHooks(ctx context.Context) {
	for _, phase := range []func() program.Phase{hk.phaseAfterDeploy, hk.phaseAfterVerify} {
		now := phase() // the hooks after verify depend on the outcome of those before
		for _, h := range hk.rollout.Hooks {
			if h.Phase != now {
				continue
			}
			if named, _, due := hk.decideHook(ctx, h.Component); due {
				hk.forecastHook(ctx, named)
			}
		}
	}
}

// forecastHook gives a hook that is to be run, or is running, its outcome.
func (hk *hooks) forecastHook(ctx context.Context, c program.Component) {
	if hk.stamp(ctx, c); hk.outcomes[c.Name].Name != "" {
		return
	}
	if _, err := hk.look(ctx, hk.placesOf(ctx, c)); err != nil {
		hk.failures = append(hk.failures, err)
		return
	}
	steps, blocked := hk.applier().steps(ctx, hk.desired[c.Name], c, false)
	switch {
	case blocked.outcome.Name != "":
		hk.outcomes[c.Name] = blocked.outcome
	case slices.ContainsFunc(steps, step.writes):
		hk.outcomes[c.Name] = hookOutcome(c.Name, status.Applied, "being run")
	default:
		hk.outcomes[c.Name] = hk.judgeHook(ctx, c)
	}
}

// decided returns the components as a Decision has them.
func (pr *progress) decided(ctx context.Context, steps map[string][]step) []DecidedComponent {
	outcomes := map[string]status.Component{}
	for _, o := range pr.components() {
		outcomes[o.Name] = o
	}
	order, _ := pr.graph.Order()
	for _, h := range pr.rollout.Hooks {
		order = append(order, h.Component.Name)
	}
	var out []DecidedComponent
	for _, name := range order {
		outcome, known := outcomes[name]
		if !known {
			continue // a hook whose phase has not come
		}
		c, _ := pr.component(name)
		d := DecidedComponent{Component: outcome, Source: c}
		judged := steps[name]
		if repairs(outcome) {
			judged, _ = pr.applier().steps(ctx, pr.desired[name], c, true)
		}
		for _, want := range byKind(pr.desired[name]) {
			d.Objects = append(d.Objects, decidedObject(want, pr.live[name][want.Object], judged))
		}
		out = append(out, d)
	}
	return out
}

// decidedObject returns an object with its step, if it has one.
func decidedObject(want ownership.Desired, live *unstructured.Unstructured, steps []step) DecidedObject {
	out := DecidedObject{Desired: want, Live: live}
	for _, s := range steps {
		if s.want.Object == want.Object {
			out.Live, out.Action = s.live, s.action
		}
	}
	return out
}
