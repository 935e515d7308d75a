package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
	"operetta.dev/engine/verify"
)

// An application is what applying one component did.
type application struct {
	writes []write
	// settled are the objects that are now as they are wanted.
	settled []ownership.Desired
	// found are the objects that are as they are wanted, and that the caches did not have.
	found []step
	// recreated are the objects that were deleted to be created anew.
	recreated []ownership.Desired
	// outcome is set when the component could not be applied.
	outcome status.Component
	// failures are the objects that could not be written.
	failures []WriteFailure
	// keepsChanging is the outcome of a component one of whose objects was written too often,
	// and resume when to look at it again.
	keepsChanging status.Component
	resume        time.Duration
}

// A write is one object that was written.
type write struct {
	want   ownership.Desired
	verb   ownership.Verb
	reason string
	before *unstructured.Unstructured
	result *unstructured.Unstructured
}

// step is one object of a component and what to do about it.
type step struct {
	want   ownership.Desired
	live   *unstructured.Unstructured
	action ownership.Action
	// held says that the object was written too often, and must wait.
	held bool
}

// apply applies one component. All its objects are judged before the first is
// written: a component that may not have one of them gets none.
//
// When the gate is closed, only what was applied before is repaired, towards the
// very same manifest.
func (r *run) apply(ctx context.Context, want []ownership.Desired, c program.Component, closed bool) application {
	steps, blocked := r.steps(ctx, want, c, closed)
	if blocked.outcome.Name != "" {
		return blocked
	}
	if refused := r.probe(ctx, steps); len(refused.failures) > 0 {
		return refused.concluded(c.Name)
	}
	return r.performAll(ctx, c.Name, steps)
}

// steps returns what to do about the objects of a component, and writes nothing. What keeps
// all of them from being written is the outcome of the application.
func (r *run) steps(ctx context.Context, want []ownership.Desired, c program.Component, closed bool) ([]step, application) {
	var out application
	var steps []step
	for _, d := range byKind(want) {
		if closed && !r.appliedBefore(d) {
			continue
		}
		s, err := r.step(ctx, c.Name, d)
		if err != nil {
			return steps, out.refused(r.writeFailure(ctx, step{want: d}, err)).concluded(c.Name)
		}
		if refused, ok := blockedOutcome(c.Name, s); ok && !closed {
			out.outcome = refused
			return append(steps, s), out
		}
		if closed && s.action.Verb == ownership.Adopt {
			continue // to take what is somebody else's is more than repair
		}
		steps = append(steps, s)
	}
	holdTogether(steps)
	return steps, out
}

// performAll carries out the steps of a component. An object that is refused keeps the
// others from being written where they rest on it, where they are changed together, and
// where the API server does not answer at all.
func (r *run) performAll(ctx context.Context, component string, steps []step) application {
	var out application
	for _, s := range steps {
		err := r.performUnlessDelayed(ctx, s, &out)
		if apierrors.IsAlreadyExists(err) {
			// Somebody was faster, and is asked whether that was the same resource.
			if s, err = r.step(ctx, component, s.want); err == nil {
				if refused, ok := blockedOutcome(component, s); ok {
					out.outcome = refused
					return out
				}
				err = r.performUnlessDelayed(ctx, s, &out)
			}
		}
		if err == nil {
			continue
		}
		out = out.refused(r.writeFailure(ctx, s, err))
		if comesFirst(s.want) || changedTogether(steps) || !isAnswer(err) {
			break
		}
	}
	return out.concluded(component)
}

// appliedBefore reports whether exactly this manifest was applied before.
func (r *run) appliedBefore(d ownership.Desired) bool {
	e, _, ok := r.in.Inventory.Find(d.Ref(), r.in.Owner.Namespace)
	return ok && e.Digest == d.Digest
}

// step decides about one object. One that seems absent is looked for on the API
// server: a cache may lag, or may not hold the objects of others.
func (r *run) step(ctx context.Context, component string, d ownership.Desired) (step, error) {
	s := step{want: d, live: r.live[component][d.Object]}
	if r.over(d) {
		s.action = ownership.Action{Verb: ownership.Keep}
		return s, nil
	}
	if s.live == nil && r.delayOf(component, d.Object, Wanted).Wait > 0 {
		s.action, s.held = ownership.Action{Verb: ownership.Create}, true
		return s, nil
	}
	if s.live == nil {
		u, err := r.Cluster.GetLive(ctx, d.Ref())
		if err != nil {
			return s, err
		}
		s.live = u
	}
	s.action = ownership.Decide(d, s.live, r.in.Owner)
	err := r.resolveOwnership(ctx, &s)
	s.held = r.mustWait(s)
	return s, err
}

// blockedOutcome returns the outcome of a component one of whose objects cannot be
// written.
func blockedOutcome(component string, s step) (status.Component, bool) {
	message := s.want.Ref().String() + ": " + s.action.Reason
	switch s.action.Verb {
	case ownership.Refuse, ownership.Conflict:
		return failed(component, status.ReasonOwnedByAnother, message), true
	case ownership.WaitForDeletion:
		return waiting(component, status.ReasonObjectGoing, message+complaint(s.live)), true
	case ownership.Keep, ownership.Create, ownership.Update, ownership.Repair, ownership.Adopt:
	}
	return status.Component{}, false
}

// complaint is what an object that is being deleted says of what holds it.
func complaint(live *unstructured.Unstructured) string {
	if text := verify.NotReadyMessage(live); text != "" {
		return "; it says: " + text
	}
	return ""
}

// perform carries out one step.
func (r *run) perform(ctx context.Context, s step, out *application) error {
	if said, ok := r.knownRejection(s); ok {
		return &knownRejectionError{said}
	}
	switch s.action.Verb {
	case ownership.Keep:
		if s.live != nil && r.live[s.want.Component][s.want.Object] == nil {
			out.found = append(out.found, s)
		}
		if s.live == nil || s.live.GetAnnotations()[ownership.AppliedMark] == s.want.Digest { // not so with createOnly
			out.settled = append(out.settled, s.want)
		}
		return nil
	case ownership.Refuse, ownership.Conflict, ownership.WaitForDeletion:
		return nil
	case ownership.Create, ownership.Update, ownership.Repair, ownership.Adopt:
	}
	result, err := r.write(ctx, s)
	if apierrors.IsInvalid(err) && s.live != nil && s.want.Policy.Apply == "recreateOnImmutable" {
		return r.recreate(ctx, s, out, err)
	}
	if err != nil {
		return err
	}
	if !s.onlyMarks() {
		out.settled = append(out.settled, s.want)
	}
	out.writes = append(out.writes, write{want: s.want, verb: s.action.Verb, reason: s.action.Reason, before: s.live, result: result})
	return nil
}

// write applies or replaces one object: exactly the one that was judged, or none.
func (r *run) write(ctx context.Context, s step) (*unstructured.Unstructured, error) {
	if s.live == nil || s.want.Policy.Apply == "replace" {
		return s.send(ctx, r.Cluster)
	}
	if s.onlyMarks() {
		return r.mark(ctx, s)
	}
	if s.action.Verb == ownership.Adopt {
		if err := r.removeForeignController(ctx, s); err != nil {
			return nil, err
		}
	}
	if fields := ownership.ReplicasToHandOver(s.want, s.live); fields != nil {
		if err := r.Cluster.HandOver(ctx, fields); err != nil {
			return nil, err
		}
	}
	return s.send(ctx, r.Cluster)
}

// send sends the manifest of a step to a cluster.
func (s step) send(ctx context.Context, to cluster.Cluster) (*unstructured.Unstructured, error) {
	if s.live == nil {
		return to.Apply(ctx, s.want.Manifest)
	}
	manifest := s.want.Manifest.DeepCopy()
	manifest.SetUID(s.live.GetUID())
	if s.want.Policy.Apply != "replace" {
		return to.Apply(ctx, manifest)
	}
	manifest.SetResourceVersion(s.live.GetResourceVersion())
	manifest.SetFinalizers(s.live.GetFinalizers()) // somebody else's work depends on them
	return to.Replace(ctx, manifest)
}

// removeForeignController takes the reference to another controller off an object that is adopted: an
// object has one at most, and an apply does not take away what others wrote. The marks
// change with it, or an owner that goes by them would put its reference back at once.
// Most often that owner is a resource of the engine, and the apply does it all.
func (r *run) removeForeignController(ctx context.Context, s step) error {
	live, err := r.Cluster.GetLive(ctx, s.want.Ref())
	if err != nil || live == nil || live.GetUID() != s.live.GetUID() {
		return err
	}
	refs := live.GetOwnerReferences()
	kept := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.Controller != nil && *ref.Controller && ref.UID != r.in.Owner.UID && !ownership.Drops(live, ref.UID)
	})
	if len(kept) == len(refs) {
		return nil
	}
	live.SetOwnerReferences(kept)
	ownership.Mark(live, r.in.Owner)
	_, err = r.Cluster.Replace(ctx, live)
	return err
}

// recreate deletes an object whose change the API server refuses, to create it
// anew in a later rollout. It does so only when the manifest itself is right: a
// mistake in it must not cost the running object.
func (r *run) recreate(ctx context.Context, s step, out *application, refused error) error {
	if err := r.Cluster.Probe(ctx, s.want.Manifest); err != nil {
		return refused
	}
	if err := r.Cluster.Delete(ctx, s.want.Ref(), s.live.GetUID()); err != nil {
		return err
	}
	out.recreated = append(out.recreated, s.want)
	out.outcome = waiting(s.want.Component, status.ReasonObjectGoing, fmt.Sprintf("%s: it is deleted to be created anew: %v", s.want.Ref(), refused))
	return nil
}

func equal(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}
