package rollout

import (
	"context"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
)

// deploy applies and verifies the components layer by layer. The next layer sees what the API
// server returned for the one before, so that a deep graph needs no more rollouts than a flat
// one. What was written may open the gate of a component that no edge connects to it, and that was
// tried before: then the layers begin again. One of these components at least is applied then, and waits no more,
// so that this ends.
func (r *run) deploy(ctx context.Context) error {
	done := map[string]bool{}
	for {
		wrote, err := r.deployLayers(ctx, done)
		if err != nil || !wrote || !r.reopen(ctx, done) {
			return err
		}
		if err := r.runPhases(ctx, r.stampAll, r.growInventory, r.storeInventory); err != nil {
			return err
		}
	}
}

// deployLayers applies and verifies the components that are not done, and reports whether the package
// sees anything new as a result.
func (r *run) deployLayers(ctx context.Context, done map[string]bool) (bool, error) {
	wrote := false
	for layer := r.next(done); len(layer) > 0; layer = r.next(done) {
		if r.applyLayer(ctx, layer) {
			wrote = true
			if err := r.runPhases(ctx, r.planAnswers, r.stampAll, r.growInventory, r.storeInventory); err != nil {
				return wrote, err
			}
		}
		for _, name := range layer {
			done[name] = true
			c, _ := r.component(name)
			if o, ok := r.outcomes[name]; !ok || o.State == status.Applied {
				r.outcomes[name] = r.judge(ctx, c)
				r.judged[name] = true
			} else {
				r.outcomes[name] = r.notAppliedOutcome(ctx, c, o)
			}
		}
	}
	return wrote, nil
}

// planAnswers evaluates what the API server has answered: it may complete other components, or change the graph behind the
// layer. A package that renders another component for each answer is stopped, since otherwise only the room of the
// status would end the rollout, after thousands of writes.
func (r *run) planAnswers(ctx context.Context) error {
	before, known := r.rollout, r.graph
	if err := r.runPhases(ctx, r.evaluateAnswers, r.plan); err != nil {
		return err
	}
	if slices.ContainsFunc(r.graph.Nodes(), func(name string) bool { return !known.Has(name) }) {
		r.roundsWithNewComponents++
	}
	if r.roundsWithNewComponents < maxRounds {
		return nil
	}
	return stopAt(renamed(before, r.rollout), status.ReasonInvalidPackage,
		"each component that is applied brings another one; which components there are must not depend on what was applied")
}

// reasonsAnAnswerMayEnd are the reasons for which a component waits that an answer of the API server may end.
var reasonsAnAnswerMayEnd = []status.Reason{status.ReasonDependency, status.ReasonRequirement, status.ReasonValue, status.ReasonUndecided}

// reopen removes the outcomes of components that waited for something that exists now, and of what waits for them, and reports
// whether there are any. A component that still waits gets a message about what it waits for now.
func (r *run) reopen(ctx context.Context, done map[string]bool) bool {
	var open []string
	for _, name := range r.graph.Nodes() {
		if !r.answerMayEnd(name) {
			continue
		}
		c, _ := r.component(name)
		waited := r.outcomes[name]
		delete(r.outcomes, name) // the gate would return it
		blocked, closed := r.gate(c)
		if closed {
			r.outcomes[name] = r.notAppliedOutcome(ctx, c, blocked)
			continue
		}
		r.outcomes[name] = waited // the gates of what depends on it look at it
		open = append(open, name)
	}
	for i := 0; i < len(open); i++ {
		for _, name := range r.graph.Dependents(open[i]) {
			if r.answerMayEnd(name) && !slices.Contains(open, name) {
				open = append(open, name)
			}
		}
	}
	for _, name := range open {
		delete(r.outcomes, name)
		delete(done, name)
	}
	return len(open) > 0
}

// answerMayEnd reports whether a component waits for something that an answer of the API server may bring.
func (r *run) answerMayEnd(component string) bool {
	return slices.Contains(reasonsAnAnswerMayEnd, r.outcomes[component].Reason)
}

// runPhases runs phases until one of them fails.
func (r *run) runPhases(ctx context.Context, phases ...phase) error {
	for _, phase := range phases {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	return nil
}

// applyLayer applies the components of a layer whose gate is open, some at a time, and repairs
// the others. It reports whether the package sees anything new as a result.
func (r *run) applyLayer(ctx context.Context, layer []string) bool {
	applied := make([]application, len(layer))
	failures := make([]error, len(layer))
	group := errgroup.Group{}
	group.SetLimit(max(1, r.Parallel))
	for i, name := range layer {
		c, _ := r.component(name)
		blocked, closed := r.gate(c)
		if closed {
			r.outcomes[name] = blocked
			if !repairs(blocked) {
				continue // excluded, held and failed components are left as they are
			}
		}
		group.Go(func() error {
			applied[i], failures[i] = r.applyComponent(ctx, c, closed)
			return nil
		})
	}
	_ = group.Wait() // each application carries its own error
	changed := false
	for i, name := range layer { // in the layer's order, whichever was faster
		changed = r.collect(name, applied[i]) || changed
		// A hook must not be judged by live reads: the cached status may not say yet that it ran.
		for _, s := range applied[i].found {
			changed = true
			r.see(name, s.want.Object, s.live)
		}
		if fault, ok := r.panicked(name, failures[i]); ok {
			r.outcomes[name] = fault
			r.failures = append(r.failures, fmt.Errorf("component %s: %w", name, failures[i]))
		}
	}
	return changed
}

// applyComponent applies a component, or repairs it if its gate is closed. A panic is an error.
func (r *run) applyComponent(ctx context.Context, c program.Component, closed bool) (out application, err error) {
	ctx, span := startSpan(ctx, "component", attribute.String("operetta.component", c.Name))
	err = guarded(func() error {
		out = r.applier().apply(ctx, r.desired[c.Name], c, closed)
		return nil
	})
	endSpan(span, err != nil || len(out.failures) > 0)
	return out, err
}

// collect adds to the rollout what applying a component did. It reports whether the package
// sees anything new as a result.
func (r *run) collect(name string, a application) bool {
	for _, w := range a.writes {
		r.see(name, w.want.Object, w.result)
		r.written[w.want.Ref().Identity()] = w.result
		r.noteChange(w)
	}
	r.inventory = r.inventory.WithDigests(r.in.Owner.Namespace, a.inSync...)
	for _, d := range a.recreated {
		r.eventf("Deleted", "Deleted %s of component %s to recreate it", d.Ref(), d.Component)
		delete(r.live[name], d.Object)
		delete(r.written, d.Ref().Identity())
	}
	for _, f := range a.failures {
		r.noteRejected(f)
		if f.Kind == Transient {
			r.failures = append(r.failures, f.err)
		}
	}
	r.requeueAfter = ShortestWait(r.requeueAfter, a.requeueAfter)
	awaited, awaits := r.awaited[name]
	_, known := r.outcomes[name]
	switch {
	case a.outcome.Name != "":
		r.outcomes[name] = a.outcome
	case known:
	case awaits:
		r.outcomes[name] = waiting(name, status.ReasonKindNotServed, awaited)
	case a.keepsChanging.Name != "":
		r.outcomes[name] = a.keepsChanging
	}
	return len(a.writes)+len(a.recreated) > 0
}

// noteChange records the event of a write, and how much the rollout has changed.
func (r *run) noteChange(w write) {
	switch w.decision {
	case ownership.Create:
		if r.applier().appliedBefore(w.want) {
			r.eventf("Restored", "Restored %s of component %s: it was gone", w.want.Ref(), w.want.Component)
			break
		}
		r.eventf("Created", "Created %s of component %s", w.want.Ref(), w.want.Component)
	case ownership.Update:
		r.eventf("Updated", "Updated %s of component %s", w.want.Ref(), w.want.Component)
	case ownership.Repair:
		r.eventf("Repaired", "Repaired %s of component %s: %s", w.want.Ref(), w.want.Component, w.reason)
	case ownership.Adopt:
		r.eventf("Adopted", "Adopted %s of component %s: %s", w.want.Ref(), w.want.Component, w.reason)
	case ownership.Keep, ownership.Refuse, ownership.Conflict, ownership.WaitForDeletion:
	}
	switch {
	case w.decision == ownership.Update && rescaled(w.before, w.result):
		if r.change == status.Unchanged {
			r.change = status.Rescaled
		}
	default:
		r.change = status.Changed
	}
}

// rescaled reports whether two versions of an object differ in their numbers of replicas
// only, apart from what each write changes.
func rescaled(before, after *unstructured.Unstructured) bool {
	if before == nil || after == nil {
		return false
	}
	a, b := before.DeepCopy(), after.DeepCopy()
	for _, u := range []*unstructured.Unstructured{a, b} {
		for _, field := range [][]string{{"spec", "replicas"}, {"spec", "minReplicas"}, {"spec", "maxReplicas"}} {
			unstructured.RemoveNestedField(u.Object, field...)
		}
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", ownership.AppliedAnnotation)
		unstructured.RemoveNestedField(u.Object, "status")
	}
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}
