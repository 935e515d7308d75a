package check

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/render"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// maxReverted is how many objects a case has at most that is changed and changed back: that takes seconds for
// hundreds.
const maxReverted = 100

// A trial is one case on its cluster.
type trial struct {
	*checker
	madeResource

	selection selection
	// repeats is true if a case is tried again to make it small.
	repeats bool
	world   *dryrun.World
	ref     cluster.Ref
	out     outcome
	// began is true once something has been written.
	began bool
	// uncertain is true if something is made up on which the outcome rests.
	uncertain bool
	// changed is true once the spec was changed. Then an object may be rejected because a field is immutable.
	changed bool
	last    reconcile.Preview
	// given are the objects of inputs as a person writes them, and merged which inputs they are of.
	given  map[cluster.Ref]map[string]any
	merged map[cluster.Ref]map[string]bool
	uids   int
	// places is where the package has the objects that it has rendered so far.
	places map[cluster.Ref]fault.Position
}

// try tries the case of a selection. It errors if the context ends.
func (c *checker) try(ctx context.Context, s selection, repeats bool) (outcome, error) {
	t := c.trial(s)
	t.repeats = repeats
	put, err := t.begin()
	if err != nil || t.out.refused {
		return t.out, err
	}
	if err := t.run(ctx); err != nil || t.out.refused {
		return t.out, err
	}
	t.out.settled, t.out.given = t.evaluator.last, t.inputsGiven()
	t.out.ready, _ = t.world.Ready(t.ref)
	if t.odd.path != "" {
		return t.out, nil // the names are all that matters
	}
	if t.out.keyed = hasKey(t.places, t.last.Components); t.out.ready {
		err := t.changeAndRevert(ctx, put)
		return t.out, err
	}
	t.out.rejected = t.rejected()
	if len(t.out.problems) == 0 && !t.uncertain {
		t.neverReady()
	}
	return t.out, nil
}

// begin puts the resource into a new cluster, and returns it. It is refused if the schema does not accept it.
func (t *trial) begin() (*unstructured.Unstructured, error) {
	admitted, err := t.server.Admit(t.resource, nil)
	if err != nil {
		t.out.refused = true
		return nil, nil //nolint:nilerr // it is counted
	}
	t.world = dryrun.New(types.NamespacedName{}, t.program)
	t.world.EvaluateWith(t.program.GroupVersionKind().GroupKind(), t.evaluator)
	for kind, scope := range t.options.Scopes {
		t.world.Cluster.Serve(kind, scope)
	}
	put, err := t.world.Put(&unstructured.Unstructured{Object: admitted})
	if err == nil {
		t.ref = cluster.RefOf(put)
	}
	return put, err
}

// trial returns the trial of a selection.
func (c *checker) trial(s selection) *trial {
	t := &trial{checker: c, madeResource: c.make(s), selection: s, given: map[cluster.Ref]map[string]any{}, merged: map[cluster.Ref]map[string]bool{}, places: map[cluster.Ref]fault.Position{}}
	t.out.samples = t.samples
	return t
}

// run gives inputs, and lets the operator and the simulated controllers act until nothing changes any more and no input
// has got a name.
func (t *trial) run(ctx context.Context) error {
	if len(t.inputs) == 0 {
		return t.rest(ctx)
	}
	if _, err := t.giveInputs(ctx); err != nil {
		return err
	}
	for range maxGiven {
		if err := t.rest(ctx); err != nil || t.out.refused {
			return err
		}
		more, err := t.giveInputs(ctx)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// rest lets the operator and the simulated controllers act until nothing changes any more, and looks at each
// state.
func (t *trial) rest(ctx context.Context) error {
	if err := t.look(ctx); err != nil || t.out.refused {
		return err
	}
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var failure error
	err := t.world.Run(inner, func(s dryrun.Step) {
		t.began = t.began || len(s.Changes) > 0
		if s.Err != nil || !passing(s.Status) {
			if failure = errors.Join(failure, t.look(ctx)); failure != nil {
				stop(failure)
			}
		}
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failure != nil:
		return failure
	case err != nil: // it has had as many rounds as a dry run has
		at, path := t.restless()
		t.report(fault.Fault{Position: at, Path: path, Message: "it does not come to rest: its objects change with every reconcile", Hint: "render nothing that changes with each write, such as metadata.generation"})
	}
	return t.look(ctx)
}

// passing reports whether a status says of each component that it is done, or waits. Everything else has to be
// looked at; the preview costs more than the reconcile.
func passing(reported map[string]any) bool {
	components, _, _ := unstructured.NestedSlice(reported, "components")
	for _, c := range components {
		entry, _ := c.(map[string]any)
		switch state, _ := entry["state"].(string); status.State(state) {
		case status.Failed, status.Retrying:
			return false
		case status.Verified, status.Applied, status.Waiting, status.Excluded, status.Held, status.Deleting:
		}
	}
	return len(components) > 0
}

// report adds a fault with the present live objects.
func (t *trial) report(f fault.Fault) {
	t.out.add(problem{fault: f, live: t.liveObjects(), early: !t.began})
}

// liveObjects returns the objects of the cluster besides the resource, as kubectl prints them. Before anything is written
// there are those of inputs.
func (t *trial) liveObjects() []map[string]any {
	if !t.began {
		return t.inputsGiven()
	}
	var out []map[string]any
	for _, u := range t.world.Cluster.Objects() {
		if cluster.RefOf(u).Identity() == t.ref.Identity() {
			continue
		}
		if given := t.given[cluster.RefOf(u).Identity()]; given != nil {
			out = append(out, given)
			continue
		}
		u.SetManagedFields(nil)
		out = append(out, u.Object)
	}
	return out
}

// preview decides about the present state, and notes the decision. A component whose timeout has ended is what it was before:
// not the time is the cause, but what it waits for.
func (t *trial) preview(ctx context.Context) (reconcile.Preview, error) {
	d, err := t.world.Preview(ctx, t.ref)
	if err != nil {
		return d, err
	}
	for i, c := range d.Components {
		d.Components[i].Component = c.WithoutTimeout()
	}
	t.last = d
	return d, nil
}

// look decides about the present state, and notes what is wrong with it.
func (t *trial) look(ctx context.Context) error {
	d, err := t.preview(ctx)
	if err != nil {
		return err
	}
	if len(d.Rollout.Invalid) > 0 {
		t.out.refused = !t.began
		return nil
	}
	t.serveUnknown(d)
	if d.Fault.Reason == status.ReasonEvaluationLimit || d.Fault.Reason == status.ReasonStatusTooLarge {
		t.uncertain = true
		return nil
	}
	silent := map[string]bool{}
	at := map[string]fault.Position{}
	own := map[string]bool{}
	duplicate := t.options.knowsDuplicate(d.Components)
	for _, c := range d.Components {
		note(t.places, c)
		at["components."+c.Name], own["components."+c.Name] = positionOf(c), t.isOwn(c)
		at["components."+c.Name+".when"] = t.program.Syntax().PositionOf("components", c.Name, "when")
		if c.Reason == status.ReasonDuplicateObject { // the other component has the same fault
			silent["components."+c.Name], duplicate = duplicate, true
		}
		for _, p := range c.Source.Verify {
			if p.Verdict == program.True {
				t.out.held = append(t.out.held, verifyPath(c.Name, p.Name))
			}
		}
		if t.failureIsKnown(ctx, c) || t.excused(ctx, c) {
			silent["components."+c.Name] = true
		}
	}
	odd := oddCase{t.odd, d.Components, func(o rollout.ObjectPreview) error { return o.Refusal(ctx, t.world.Cluster) }}
	for _, f := range render.Faults(d) {
		if silent[f.Path] {
			continue
		}
		f.Position = cmp.Or(f.Position, at[f.Path])
		f.Hint = cmp.Or(f.Hint, hintAt(ctx, t, d.Components, f.Path))
		f, counts := odd.explained(f)
		if !counts {
			continue
		}
		t.out.add(problem{fault: f, live: t.liveObjects(), early: !t.began, isOwn: own[f.Path]})
	}
	return nil
}

// isOwn reports whether objects of a component were refused, and no input has a part in what they are: inputs only decide
// whether it comes to that.
func (t *trial) isOwn(c rollout.ComponentPreview) bool {
	if c.Reason != status.ReasonObjectRejected && c.Reason != status.ReasonApplyFailed {
		return false
	}
	return !slices.ContainsFunc(c.Objects, func(o rollout.ObjectPreview) bool {
		refs, shown := t.program.Syntax().Secrets().RestsOn(c.Name, o.Object)
		return !shown || slices.ContainsFunc(refs, func(r syntax.Reference) bool { return r.Path[0] != "cr" })
	})
}

func verifyPath(component, predicate string) string {
	return "components." + component + ".verify." + predicate
}

// serveUnknown serves the kinds that nobody here knows, as if their definitions were there. Kinds that Kubernetes has
// removed are known.
func (t *trial) serveUnknown(d reconcile.Preview) {
	for _, c := range d.Rollout.Components {
		for _, o := range c.Objects {
			kind := o.Identity.GroupVersionKind
			if _, removed := cluster.APIRemovalOf(kind); removed {
				continue
			}
			if _, err := t.world.Scope(kind); cluster.IsKindNotServed(err) && o.Identity.Known() {
				t.world.Cluster.Serve(kind.GroupKind(), cluster.Namespaced)
			}
		}
	}
}

// outside are the reasons of components that are no fault of a package alone.
var outside = []status.Reason{status.ReasonOwnedByAnother, status.ReasonKindNotServed, status.ReasonEvaluationLimit, status.ReasonEvaluationTooSlow}

// excused reports whether a component has failed for a reason that may be that something is made up. Then what
// follows is uncertain.
func (t *trial) excused(ctx context.Context, c rollout.ComponentPreview) bool {
	excused := slices.Contains(outside, c.Reason)
	excused = excused || c.Reason == status.ReasonDuplicateObject && t.coincides
	if c.Reason == status.ReasonObjectRejected || c.Reason == status.ReasonApplyFailed {
		excused = t.changed || t.rejectsInvention(ctx, c)
	}
	t.uncertain = t.uncertain || excused
	return excused
}

// changeAndRevert changes the spec to that of the simplest case and back, and reports if that does not end as before.
func (t *trial) changeAndRevert(ctx context.Context, was *unstructured.Unstructured) error {
	if t.isSimplest() || !t.bringsNewChange() {
		return nil
	}
	before := t.owned()
	if len(before) == 0 || len(before) > maxReverted {
		return nil // a package that renders nothing prunes nothing
	}
	t.changed = true
	simplest, err := t.server.Admit(t.make(make(selection, len(t.branches))).resource, was.Object)
	if err != nil {
		return nil //nolint:nilerr // the schema forbids the change
	}
	for i, spec := range []any{simplest["spec"], was.Object["spec"]} {
		done, err := changeSpec(ctx, t, spec)
		if err != nil || done == nil {
			return err
		}
		ready, _ := t.world.Ready(t.ref)
		if !ready {
			done.reportImmutable(ctx, t)
		}
		if !ready && i == 0 {
			return nil // it may need another change first
		}
	}
	if ready, why := t.world.Ready(t.ref); !ready && !t.uncertain && len(t.out.problems) == 0 {
		t.report(fault.Fault{Position: unready(t.program, t.last.Components), Path: "spec", Message: "a change to the simplest spec and back does not lead back: " + why})
		return nil
	}
	if after := t.owned(); !maps.Equal(before, after) && !t.uncertain && len(t.out.problems) == 0 {
		ref, text := difference(before, after)
		t.report(fault.Fault{Position: cmp.Or(t.places[ref], unready(t.program, t.last.Components)), Path: "spec", Message: "a change to the simplest spec and back leaves other objects than before", Hint: text})
	}
	return nil
}

// bringsNewChange reports whether a choice of the case was in none before that was changed to the simplest one: every
// pair would cost twice the time.
func (t *trial) bringsNewChange() bool {
	found := false
	for i := range t.used {
		at := [2]int{i, t.selection[i]}
		found = found || t.selection[i] > 0 && !t.changes[at]
		t.changes[at] = true
	}
	return found || t.repeats
}

// isSimplest reports whether the case is the simplest one.
func (t *trial) isSimplest() bool {
	spec, _ := t.value(t.spec, make(selection, len(t.branches)), 0, &madeResource{used: map[int]bool{}})
	return equal(spec, t.resource["spec"])
}
