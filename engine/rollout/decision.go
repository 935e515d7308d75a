package rollout

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
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

// Decide returns what Run would do now, and writes nothing: what would be written first, the
// cluster is asked about by dry runs. It errors when the cluster
// does not answer; the Decision is valid then, too.
func (e *Engine) Decide(ctx context.Context, in Input) (Decision, error) {
	r := newRun(e, in)
	r.through(ctx, r.observe, r.evaluate, r.decide, r.stampAll, r.checkRoom)
	out := Decision{Fault: r.result.Completion.Fault, Rollout: r.rollout}
	if out.Fault.Reason == "" && r.graph != nil {
		steps := map[string][]step{}
		r.forecast(ctx, func(ctx context.Context, c program.Component) status.Component {
			outcome, all := r.prospect(ctx, c)
			steps[c.Name] = all
			return outcome
		})
		r.forecastHooks(ctx)
		out.Patches = r.patchReports()
		out.Components = r.decided(ctx, steps)
		out.Fault = r.finish().Completion.Fault
	}
	return out, errors.Join(r.failures...)
}

// checkRoom ends a decision as the rollout would end before its first write: when the status
// has no room for what would be written.
func (r *run) checkRoom(ctx context.Context) error {
	grown := r.grownInventory(ctx)
	if grown.Equal(r.inventory) {
		return nil
	}
	return r.checkInventory(grown)
}

// stampAll prepares the objects of all components.
func (r *run) stampAll(ctx context.Context) error {
	r.desired = map[string][]ownership.Desired{}
	for _, c := range r.rollout.Components {
		r.stamp(ctx, c)
	}
	r.failDuplicates(ctx)
	return nil
}

// forecast gives every component without an outcome the one that it has before anything is
// written. Of one that may be applied, open says which that is.
func (r *run) forecast(ctx context.Context, open func(context.Context, program.Component) status.Component) {
	done := maps.Clone(r.outcomes) // those that could not be stamped, and of a rollout on its way those that were judged
	order, _ := r.graph.Order()
	for _, name := range order {
		c, _ := r.component(name)
		blocked, closed := r.gate(c)
		switch _, known := done[name]; {
		case known && r.judged[name]:
		case closed:
			r.outcomes[name] = r.untouched(ctx, c, blocked)
		default:
			r.outcomes[name] = open(ctx, c)
		}
	}
}

// inProgress is the outcome of a component that is about to be written.
func inProgress(name string) status.Component {
	return status.Component{Name: name, State: status.Applied, Reason: status.ReasonProgressing, Message: "being applied"}
}

// prospect returns the outcome of a component that may be applied, and what would be done
// about its objects.
func (r *run) prospect(ctx context.Context, c program.Component) (status.Component, []step) {
	steps, blocked := r.steps(ctx, r.desired[c.Name], c, false)
	if blocked.outcome.Name != "" {
		return blocked.outcome, steps
	}
	var refused, held application
	writes, dry := false, r.Cluster.DryRun()
	for _, s := range steps {
		if s.writes() {
			writes = true
			refused = r.tried(ctx, dry, s, refused)
		}
		if p := r.delayOf(c.Name, s.want.Object, needOf(s.action.Verb)); p.Times > 0 && held.keepsChanging.Name == "" {
			held.keepsChanging = keepsChanging(s, p)
		}
	}
	awaited, awaits := r.awaited[c.Name]
	switch said := refused.concluded(c.Name).outcome; {
	case said.Name != "":
		return said, steps
	case awaits:
		return waiting(c.Name, status.ReasonKindNotServed, awaited), steps
	case held.keepsChanging.Name != "":
		return held.keepsChanging, steps
	case writes:
		return inProgress(c.Name), steps
	}
	r.judged[c.Name] = true
	return r.judge(ctx, c), steps
}

// tried adds to an application what the cluster says to the write of a step, if it would
// refuse that.
func (r *run) tried(ctx context.Context, dry cluster.Cluster, s step, out application) application {
	if said, ok := r.knownRejection(s); ok {
		return out.refused(said)
	}
	if s.onlyMarks() {
		return out
	}
	if _, err := s.send(ctx, dry); r.wouldBeRefused(ctx, s, err) {
		return out.refused(r.writeFailure(ctx, s, err))
	}
	return out
}

// forecastHooks gives the hooks whose phase has come the outcome that they have before
// anything is written.
func (r *run) forecastHooks(ctx context.Context) {
	for _, phase := range []func() (program.Phase, bool){r.phaseAfterDeploy, r.phaseAfterVerify} {
		p, come := phase()
		for _, h := range r.rollout.Hooks {
			if !come || h.Phase != p {
				continue
			}
			if named, _, due := r.decideHook(ctx, h.Component); due {
				r.forecastHook(ctx, named)
			}
		}
	}
}

// forecastHook gives a hook that is to be run, or is running, its outcome.
func (r *run) forecastHook(ctx context.Context, c program.Component) {
	if r.stamp(ctx, c); r.outcomes[c.Name].Name != "" {
		return
	}
	if _, err := r.look(ctx, r.placesOf(ctx, c)); err != nil {
		r.failures = append(r.failures, err)
		return
	}
	steps, blocked := r.steps(ctx, r.desired[c.Name], c, false)
	switch {
	case blocked.outcome.Name != "":
		r.outcomes[c.Name] = blocked.outcome
	case slices.ContainsFunc(steps, step.writes):
		r.outcomes[c.Name] = hookOutcome(c.Name, status.Applied, "being run")
	default:
		r.outcomes[c.Name] = r.judgeHook(ctx, c)
	}
}

// decided returns the components as a Decision has them.
func (r *run) decided(ctx context.Context, steps map[string][]step) []DecidedComponent {
	outcomes := map[string]status.Component{}
	for _, o := range r.components() {
		outcomes[o.Name] = o
	}
	order, _ := r.graph.Order()
	for _, h := range r.rollout.Hooks {
		order = append(order, h.Component.Name)
	}
	var out []DecidedComponent
	for _, name := range order {
		outcome, known := outcomes[name]
		if !known {
			continue // a hook whose phase has not come
		}
		c, _ := r.component(name)
		d := DecidedComponent{Component: outcome, Source: c}
		judged := steps[name]
		if repairs(outcome) {
			judged, _ = r.steps(ctx, r.desired[name], c, true)
		}
		for _, want := range byKind(r.desired[name]) {
			d.Objects = append(d.Objects, decidedObject(want, r.live[name][want.Object], judged))
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
