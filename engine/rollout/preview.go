package rollout

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// A Preview is what a rollout would do, as far as that is known before its first write: what the
// API server returns for one layer may allow the next.
type Preview struct {
	// Fault is what is wrong with the resource or the package as a whole. No component is previewed
	// then, unless the fault is about the status fields only.
	Fault status.Component
	// FaultAt is where the package has what is wrong, as far as that is known.
	FaultAt fault.Position
	// Rollout is the result of the last evaluation, with the patches.
	Rollout program.Rollout
	// Components are in the order of dependencies, followed by the hooks whose phase has come.
	Components []ComponentPreview
	// Patches are the results of the patches.
	Patches []patch.Report
	// Change is Changed if objects are about to be written. Whether only replicas change is not known before the write.
	Change status.Change
}

// A ComponentPreview is a component and what a rollout would do about it.
type ComponentPreview struct {
	// Component is what the status would say.
	status.Component
	// Source is the component as it was evaluated.
	Source program.Component
	// Objects are in the order in which they are written. There are none while one of them is
	// incomplete or invalid.
	Objects []ObjectPreview
}

// writes reports whether a rollout would write an object of the component. One that is refused, or comes later, is not
// written although it is decided what to do about it.
func (c ComponentPreview) writes() bool {
	return (c.State == status.Applied || repairs(c.Component)) && slices.ContainsFunc(c.Objects, func(o ObjectPreview) bool {
		return needOf(o.Action.Decision) == Wanted
	})
}

// An ObjectPreview is a desired object and what a rollout would do about it.
type ObjectPreview struct {
	ownership.Desired
	// Live is the object as it was observed, or nil.
	Live *unstructured.Unstructured
	// Action has no Decision while the component waits.
	Action ownership.Action
}

// Refusal returns the error with which a cluster refuses to write the object as it is rendered, or nil. It asks by a dry run.
func (o ObjectPreview) Refusal(ctx context.Context, in cluster.Cluster) error {
	want := o.Manifest
	if o.Live != nil { // without the UID, an apply only creates
		want = want.DeepCopy()
		want.SetUID(o.Live.GetUID())
	}
	_, err := in.DryRun().Apply(ctx, want)
	return err
}

// Preview returns what Run would do now, and writes nothing: of what Run would write first, it
// asks the cluster by dry runs. It errors when the cluster does not answer; the Preview is
// valid then, too.
func (e *Engine) Preview(ctx context.Context, in Input) (Preview, error) {
	r := newRun(ctx, e, in)
	r.runUntilFault(ctx, r.readOnlyPhases()...)
	out := Preview{Fault: r.result.Completion.Fault, FaultAt: r.stoppedAt, Rollout: r.rollout, Change: status.Unchanged}
	if out.Fault.IsZero() && r.graph != nil {
		decisions := map[string][]decision{}
		r.previewOutcomes(ctx, func(ctx context.Context, c program.Component) status.Component {
			outcome, all := r.previewApply(ctx, c)
			decisions[c.Name] = all
			return outcome
		})
		r.previewHooks(ctx, decisions)
		out.Patches = r.patchReports()
		out.Components = r.componentPreviews(ctx, decisions)
		if slices.ContainsFunc(out.Components, ComponentPreview.writes) {
			out.Change = status.Changed
		}
		out.Fault = r.statusFault()
	}
	return out, errors.Join(r.failures...)
}

// previewOutcomes gives each component the outcome that it has before anything is written, unless it
// has been judged. For a component that may be applied, apply returns it.
func (pr *progress) previewOutcomes(ctx context.Context, apply func(context.Context, program.Component) status.Component) {
	order, _ := pr.graph.Order()
	for _, name := range order {
		if pr.judged[name] {
			continue
		}
		c, _ := pr.component(name)
		if blocked, closed := pr.gate(c); closed {
			pr.outcomes[name] = pr.notAppliedOutcome(ctx, c, blocked)
		} else {
			pr.outcomes[name] = apply(ctx, c)
		}
	}
}

// inProgress is the outcome of a component that is about to be written.
func inProgress(name string) status.Component {
	return status.Component{Name: name, State: status.Applied, Reason: status.ReasonProgressing, Message: "being applied"}
}

// previewApply returns the outcome of a component that may be applied, and what apply would
// do about its objects.
func (pr *progress) previewApply(ctx context.Context, c program.Component) (status.Component, []decision) {
	ap := pr.applier()
	decisions, blocked := ap.decisions(ctx, pr.desired[c.Name], c, false)
	if blocked.outcome.Name != "" {
		return blocked.outcome, decisions
	}
	if refused := ap.dryRun(ctx, decisions, 0).withOutcome(c.Name).outcome; refused.Name != "" {
		return refused, decisions
	}
	if awaited, ok := pr.awaited[c.Name]; ok {
		return waiting(c.Name, status.ReasonKindNotServed, awaited), decisions
	}
	for _, s := range decisions {
		if d := ap.delayOf(s.want, needOf(s.action.Decision)); d.Times > 0 {
			return keepsChanging(s, d), decisions
		}
	}
	if slices.ContainsFunc(decisions, decision.writes) {
		return inProgress(c.Name), decisions
	}
	pr.judged[c.Name] = true
	return pr.judge(ctx, c), decisions
}

// previewHooks gives the hooks whose phase has come the outcome that they have before
// anything is written, and adds what is decided about their objects.
func (hk *hooks) previewHooks(ctx context.Context, decisions map[string][]decision) {
	for _, phase := range []func() program.HookPhase{hk.phaseAfterDeploy, hk.phaseAfterVerify} {
		now := phase() // the hooks after verify depend on the outcome of those before
		for _, h := range hk.rollout.Hooks {
			if h.Phase != now {
				continue
			}
			if named, _, due := hk.decideHook(ctx, h.Component); due {
				decisions[named.Name] = hk.previewHook(ctx, named)
			}
		}
	}
}

// previewHook gives a hook that is to be run, or is running, its outcome, and returns what running it
// would do about its objects.
func (hk *hooks) previewHook(ctx context.Context, c program.Component) []decision {
	if hk.stamp(ctx, c); hk.outcomes[c.Name].Name != "" {
		return nil
	}
	if _, err := hk.look(ctx, hk.placesOf(ctx, c)); err != nil {
		hk.failures = append(hk.failures, err)
		return nil
	}
	decisions, blocked := hk.applier().decisions(ctx, hk.desired[c.Name], c, false)
	switch {
	case blocked.outcome.Name != "":
		hk.outcomes[c.Name] = blocked.outcome
	case slices.ContainsFunc(decisions, decision.writes):
		hk.outcomes[c.Name] = hookOutcome(c.Name, status.Applied, "being run")
	default:
		hk.outcomes[c.Name] = hk.judgeHook(ctx, c)
	}
	return decisions
}

// componentPreviews returns the components as a Preview has them.
func (pr *progress) componentPreviews(ctx context.Context, decisions map[string][]decision) []ComponentPreview {
	outcomes := map[string]status.Component{}
	for _, o := range pr.components() {
		outcomes[o.Name] = o
	}
	order, _ := pr.graph.Order()
	for _, h := range pr.rollout.Hooks {
		order = append(order, h.Component.Name)
	}
	var out []ComponentPreview
	for _, name := range order {
		outcome, known := outcomes[name]
		if !known {
			continue // a hook whose phase has not come
		}
		c, _ := pr.component(name)
		d := ComponentPreview{Component: outcome, Source: c}
		judged := decisions[name]
		if repairs(outcome) {
			judged, _ = pr.applier().decisions(ctx, pr.desired[name], c, true)
		}
		for _, want := range byKind(pr.desired[name]) {
			d.Objects = append(d.Objects, objectPreview(want, pr.live[name][want.Object], judged))
		}
		out = append(out, d)
	}
	return out
}

// objectPreview returns an object with the decision about it, if there is one.
func objectPreview(want ownership.Desired, live *unstructured.Unstructured, decisions []decision) ObjectPreview {
	out := ObjectPreview{Desired: want, Live: live}
	for _, s := range decisions {
		if s.want.Object == want.Object {
			out.Live, out.Action = s.live, s.action
		}
	}
	return out
}
