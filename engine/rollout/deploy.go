package rollout

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
	"operetta.dev/engine/verify"
)

// deploy applies and verifies the components layer by layer. What the API server
// answers to one layer is there for the next in the same rollout, so that the
// depth of the graph does not multiply rollouts.
func (r *run) deploy(ctx context.Context) error {
	done := map[string]bool{}
	for layer := r.next(done); len(layer) > 0; layer = r.next(done) {
		if r.applyLayer(ctx, layer) {
			if err := r.again(ctx); err != nil {
				return err
			}
		}
		for _, name := range layer {
			done[name] = true
			c, _ := r.component(name)
			if o, ok := r.outcomes[name]; !ok || o.State == status.Applied {
				r.outcomes[name] = r.judge(ctx, c)
				r.judged[name] = true
			} else {
				r.outcomes[name] = r.untouched(ctx, c, o)
			}
		}
	}
	return nil
}

// again evaluates with what a layer wrote, and prepares what that completes. That may
// be other components than before, and other edges.
func (r *run) again(ctx context.Context) error {
	if err := r.evaluateOnce(ctx); err != nil {
		return err
	}
	if err := r.decide(ctx); err != nil {
		return err
	}
	for _, c := range r.rollout.Components {
		if _, done := r.outcomes[c.Name]; !done {
			r.stamp(ctx, c)
		}
	}
	r.failDuplicates(ctx)
	return r.recordInventory(ctx)
}

// applyLayer applies the components of a layer whose gate is open, some at a
// time, and repairs the others. It reports whether the package sees anything else by that.
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
			failures[i] = guarded(func() error {
				applied[i] = r.apply(ctx, r.desired[name], c, closed)
				return nil
			})
			return nil
		})
	}
	_ = group.Wait() // applications carry their own errors
	changed := r.collect(layer, applied)
	for i, name := range layer {
		for _, s := range applied[i].found {
			changed = true // what comes later may rest on it
			r.see(name, s.want.Object, s.live)
		}
		if fault, ok := r.panicked(name, failures[i]); ok {
			r.outcomes[name] = fault
			r.failures = append(r.failures, fmt.Errorf("component %s: %w", name, failures[i]))
		}
	}
	return changed
}

// collect takes over what a layer's applications did, in the layer's order, so
// that the result does not depend on which was faster.
func (r *run) collect(layer []string, applied []application) bool {
	written := false
	for i, name := range layer {
		a := applied[i]
		for _, w := range a.writes {
			written = true
			r.see(name, w.want.Object, w.result)
			r.noteChange(w)
		}
		for _, d := range a.settled {
			r.inventory = r.inventory.Applied(d, r.in.Owner.Namespace)
		}
		for _, d := range a.recreated {
			written = true
			r.eventf("Deleted", "Deleted %s of component %s to create it anew", d.Ref(), d.Component)
			delete(r.live[name], d.Object)
		}
		for _, refused := range a.failures {
			r.noteRefused(refused)
			if refused.Kind == Transient {
				r.failures = append(r.failures, refused.err)
			}
		}
		if a.outcome.Name != "" {
			r.outcomes[name] = a.outcome
		}
		if awaited, ok := r.awaited[name]; ok && r.outcomes[name].Name == "" {
			r.outcomes[name] = waiting(name, status.ReasonKindNotServed, awaited)
		}
		r.collectDelay(a)
	}
	return written
}

// noteChange records an event and how much was changed.
func (r *run) noteChange(w write) {
	switch w.verb {
	case ownership.Create:
		if r.appliedBefore(w.want) {
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
	case w.verb == ownership.Update && rescaled(w.before, w.result):
		if r.change == status.Unchanged {
			r.change = status.Rescaled
		}
	default:
		r.change = status.Changed
	}
}

// judge says how healthy an applied component is.
func (r *run) judge(ctx context.Context, c program.Component) status.Component {
	out := status.Component{Name: c.Name, State: status.Verified, Reason: status.ReasonVerified}
	for _, o := range c.Objects {
		j := r.healthOf(ctx, c, o)
		switch j.Health {
		case verify.Ready:
			continue
		case verify.Failed, verify.Broken:
			return failed(c.Name, status.ReasonObjectFailed, r.objectText(c.Name, o)+": "+j.Message)
		case verify.Progressing:
			if out.State == status.Verified {
				out.State, out.Reason, out.Message = status.Applied, status.ReasonNotReady, r.objectText(c.Name, o)+": "+j.Message
			}
		}
	}
	j := verify.Predicates(c.Verify, c.Failed)
	switch j.Health {
	case verify.Failed:
		return failed(c.Name, status.ReasonObjectFailed, j.Message)
	case verify.Broken:
		return failed(c.Name, status.ReasonPredicateBroken, j.Message)
	case verify.Progressing:
		if i := slices.IndexFunc(c.Verify, func(p program.Predicate) bool { return p.Unset != "" }); i >= 0 {
			return unset(c.Name, "verify."+c.Verify[i].Name+": "+c.Verify[i].Explain(), c.Verify[i].Unset)
		}
		if out.State == status.Verified {
			out.State, out.Reason, out.Message = status.Applied, status.ReasonNotReady, j.Message
		} else {
			out.Message += "; " + j.Message // the author's words beside the kind's own
		}
	case verify.Ready:
	}
	return out
}

// untouched returns the outcome of a component whose gate is closed, and which runs
// healthily and as it should all the same.
func (r *run) untouched(ctx context.Context, c program.Component, blocked status.Component) status.Component {
	waits := blocked.State == status.Waiting && blocked.Reason == status.ReasonDependency
	if waits && len(r.desired[c.Name]) > 0 && r.inSync(c.Name) {
		blocked.Healthy = r.judge(ctx, c).State == status.Verified
	}
	return blocked
}

// health judges an object. The resource of another operator is ready when that has
// said so of its present generation.
func (r *run) health(ctx context.Context, live *unstructured.Unstructured, policy string) verify.Judgement {
	j := verify.Object(live, policy)
	if j.Health == verify.Progressing && live != nil && r.PodProblem != nil {
		if why := r.PodProblem(ctx, live); why != "" {
			j.Message += "; " + why
		}
	}
	if j.Health != verify.Ready || policy != "ready" || r.Subsystem == nil {
		return j
	}
	reports, err := r.Subsystem(ctx, live.GroupVersionKind().GroupKind())
	switch {
	case err != nil:
		r.failures = append(r.failures, fmt.Errorf("%s: asking whether it is the resource of a package: %w", cluster.RefOf(live), err))
		return verify.Judgement{Health: verify.Progressing, Message: "whether it is the resource of a package cannot be asked: " + err.Error()}
	case reports:
		return verify.ReadyCondition(live)
	}
	return j
}

// objectText names an object that may not be there.
func (r *run) objectText(component string, o program.Object) string {
	if u := r.live[component][o.Name]; u != nil {
		return cluster.RefOf(u).String()
	}
	return "object " + o.Name
}

// rescaled reports whether two versions of an object differ in numbers of
// replicas alone, apart from what every write changes.
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
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", ownership.AppliedMark)
		unstructured.RemoveNestedField(u.Object, "status")
	}
	return equal(a, b)
}
