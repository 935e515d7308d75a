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

// A Decision is what a rollout would do now, as far as that is known before its first
// write: what the cluster answers may let it go further.
type Decision struct {
	// Fault is what is wrong with the resource or the package as a whole; no component is
	// decided then, unless it is about the status alone.
	Fault status.Component
	// Rollout is what was evaluated last, with the patches.
	Rollout program.Rollout
	// Components are decided dependencies first, and the hooks whose phase has come after
	// them.
	Components []DecidedComponent
	// Patches are what the patches have changed.
	Patches []patch.Report
}

// A DecidedComponent is a component and what becomes of it.
type DecidedComponent struct {
	// Component is what the status would say of it.
	status.Component
	// Source is what the package says of it.
	Source program.Component
	// Objects are its objects in the order in which they are written; there are none while
	// one of them is incomplete or wrong.
	Objects []DecidedObject
}

// A DecidedObject is an object as it is wanted, and what to do about it.
type DecidedObject struct {
	ownership.Desired
	// Live is the object as it was observed, or nil.
	Live *unstructured.Unstructured
	// Action is what is done about it; its Verb is empty while its component waits for its turn.
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
		if d := ap.delayOf(c.Name, s.want.Object, needOf(s.action.Verb)); d.Times > 0 {
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

// decidedObject returns an object with the step that is about it, if one is.
func decidedObject(want ownership.Desired, live *unstructured.Unstructured, steps []step) DecidedObject {
	out := DecidedObject{Desired: want, Live: live}
	for _, s := range steps {
		if s.want.Object == want.Object {
			out.Live, out.Action = s.live, s.action
		}
	}
	return out
}
