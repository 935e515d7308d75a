package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/status"
	"operetta.dev/engine/verify"
)

// applier writes the objects of one component. Several run at the same time, so it changes
// nothing of the rollout and returns what it did.
type applier struct{ *observed }

func (obs *observed) applier() applier { return applier{obs} }

// An application is what applying one component did.
type application struct {
	writes []write
	// inSync are the objects that are now as they are wanted.
	inSync []ownership.Desired
	// found are the objects that are as they are wanted and were missing from the cache.
	found []decision
	// recreated are the objects that were deleted to be recreated.
	recreated []ownership.Desired
	// outcome is set when the component could not be applied.
	outcome status.Component
	// failures are the objects that could not be written.
	failures []WriteFailure
	// keepsChanging is the outcome if an object was written too often, and requeueAfter when
	// to look at it again.
	keepsChanging status.Component
	requeueAfter  time.Duration
}

// A write is one object that was written.
type write struct {
	want     ownership.Desired
	decision ownership.Decision
	reason   string
	before   *unstructured.Unstructured
	result   *unstructured.Unstructured
}

// A decision is one object of a component and what to do about it.
type decision struct {
	want   ownership.Desired
	live   *unstructured.Unstructured
	action ownership.Action
	// delayed says that the object was written too often, and must wait.
	delayed bool
}

// apply applies one component. It decides about all objects before it writes the first: a
// component that may not have one of them gets none. When several are changed together, the
// API server is asked about all but the first, whose refusal leaves nothing half written.
//
// When the gate is closed, it only repairs what was applied before, towards the same manifest.
func (ap applier) apply(ctx context.Context, want []ownership.Desired, c program.Component, closed bool) application {
	decisions, blocked := ap.decisions(ctx, want, c, closed)
	if blocked.outcome.Name != "" {
		return blocked
	}
	if changedTogether(decisions) {
		if refused := ap.dryRun(ctx, decisions, 1); len(refused.failures) > 0 {
			return refused.withOutcome(c.Name)
		}
	}
	return ap.performAll(ctx, c.Name, decisions)
}

// decisions returns what to do about the objects of a component, and writes nothing. If one of
// them keeps all from being written, the application has an outcome.
func (ap applier) decisions(ctx context.Context, want []ownership.Desired, c program.Component, closed bool) ([]decision, application) {
	var out application
	var decisions []decision
	wanted := byKind(want)
	if closed {
		wanted = slices.DeleteFunc(wanted, func(d ownership.Desired) bool { return !ap.appliedBefore(d) })
	}
	looked, failures := ap.lookAhead(ctx, c.Name, wanted, closed)
	for i, d := range wanted {
		s, err := looked[i], failures[i]
		if fault, ok := errors.AsType[*PanicError](err); ok {
			panic(fault) // it stops the component, as one in this goroutine does
		}
		if err != nil {
			return decisions, out.withFailure(ap.writeFailure(ctx, decision{want: d}, err)).withOutcome(c.Name)
		}
		if refused, ok := blockedOutcome(c.Name, s); ok && !closed {
			out.outcome = refused
			return append(decisions, s), out
		}
		if closed && s.action.Decision == ownership.Adopt {
			continue // an adoption is more than a repair
		}
		decisions = append(decisions, s)
	}
	delayTogether(decisions)
	return decisions, out
}

// lookAhead returns the decision about each object, or why there is none, up to the first that refuses the
// component. Objects that are absent cost a read each: once the first of them is looked up, and the
// component has a chance, the others are read side by side.
func (ap applier) lookAhead(ctx context.Context, component string, want []ownership.Desired, closed bool) ([]decision, []error) {
	decisions, failures := make([]decision, len(want)), make([]error, len(want))
	group := errgroup.Group{}
	group.SetLimit(parallelReads)
	absent := 0
	for i, d := range want {
		look := func() error {
			failures[i] = guarded(func() (err error) { decisions[i], err = ap.decide(ctx, component, d); return err })
			return nil
		}
		if ap.live[component][d.Object] == nil {
			absent++
		}
		if absent > 1 {
			group.Go(look)
			continue
		}
		_ = look() // each decision carries its own error
		if failures[i] != nil {
			break
		}
		if _, refused := blockedOutcome(component, decisions[i]); refused && !closed {
			break
		}
	}
	_ = group.Wait()
	return decisions, failures
}

// performAll carries out the decisions about a component. It stops at an object that is refused if the
// others need that one, if they are changed together, or if the API server does not answer.
func (ap applier) performAll(ctx context.Context, component string, decisions []decision) application {
	var out application
	for _, s := range decisions {
		err := ap.performUnlessDelayed(ctx, s, &out)
		if apierrors.IsAlreadyExists(err) {
			// Another client was faster; the owner of that object may be the same resource.
			if s, err = ap.decide(ctx, component, s.want); err == nil {
				if refused, ok := blockedOutcome(component, s); ok {
					out.outcome = refused
					return out
				}
				err = ap.performUnlessDelayed(ctx, s, &out)
			}
		}
		if err == nil {
			continue
		}
		out = out.withFailure(ap.writeFailure(ctx, s, err))
		if comesFirst(s.want) || changedTogether(decisions) || !isAnswer(err) {
			break
		}
	}
	return out.withOutcome(component)
}

// appliedBefore reports whether exactly this manifest was applied before.
func (ap applier) appliedBefore(d ownership.Desired) bool {
	e, ok := ap.stored[d.Ref().Identity()]
	return ok && e.Digest == d.Digest
}

// decide decides about one object. One that seems absent is read live: the cache may lag, and may
// not hold the objects of others.
func (ap applier) decide(ctx context.Context, component string, d ownership.Desired) (decision, error) {
	s := decision{want: d, live: ap.live[component][d.Object]}
	if s.live != nil && cluster.RefOf(s.live).Identity() != d.Ref().Identity() {
		s.live = nil // it has got another name since it was observed
	}
	if ap.finished(d) {
		s.action = ownership.Action{Decision: ownership.Keep}
		return s, nil
	}
	if s.live == nil && ap.delayOf(d, Wanted).Wait > 0 {
		s.action, s.delayed = ownership.Action{Decision: ownership.Create}, true
		return s, nil
	}
	if s.live == nil {
		u, err := ap.Cluster.GetLive(ctx, d.Ref())
		if err != nil {
			return s, err
		}
		s.live = u
	}
	s.action = ownership.Decide(d, s.live, ap.in.Owner)
	err := ap.resolveOwnership(ctx, &s)
	s.delayed = needOf(s.action.Decision) == Wanted && ap.delayOf(d, Wanted).Wait > 0
	return s, err
}

// blockedOutcome returns the outcome of a component if an object must not be written.
func blockedOutcome(component string, s decision) (status.Component, bool) {
	message := s.want.Ref().String() + ": " + s.action.Reason
	switch s.action.Decision {
	case ownership.Refuse, ownership.Conflict:
		return failed(component, status.ReasonOwnedByAnother, message), true
	case ownership.WaitForDeletion:
		return waiting(component, status.ReasonObjectGoing, message+deletionStatus(s.live)), true
	case ownership.Keep, ownership.Create, ownership.Update, ownership.Repair, ownership.Adopt:
	}
	return status.Component{}, false
}

// deletionStatus returns what the status of an object that is being deleted says about what holds it up, as a clause of a
// message, or "" if it says nothing.
func deletionStatus(live *unstructured.Unstructured) string {
	if text := verify.NotReadyMessage(live); text != "" {
		return "; it says: " + text
	}
	return ""
}

// perform carries out one decision.
func (ap applier) perform(ctx context.Context, s decision, out *application) error {
	if said, ok := ap.knownRejection(s); ok {
		return &knownRejectionError{said}
	}
	switch s.action.Decision {
	case ownership.Keep:
		if s.live != nil && ap.live[s.want.Component][s.want.Object] == nil {
			out.found = append(out.found, s)
		}
		if s.live == nil || s.live.GetAnnotations()[ownership.AppliedAnnotation] == s.want.Digest { // not so with createOnly
			out.inSync = append(out.inSync, s.want)
		}
		return nil
	case ownership.Refuse, ownership.Conflict, ownership.WaitForDeletion:
		return nil
	case ownership.Create, ownership.Update, ownership.Repair, ownership.Adopt:
	}
	result, err := ap.write(ctx, s)
	if cluster.RefusesChange(err) && s.live != nil && s.want.Policy.Apply == program.RecreateOnImmutable {
		return ap.recreate(ctx, s, out, err)
	}
	if err != nil {
		return err
	}
	// The same reconcile decides about the object again, which is remembered for objects as caches have them.
	ownership.CompactManagedFields(result)
	if !s.onlyMarks() {
		out.inSync = append(out.inSync, s.want)
	}
	out.writes = append(out.writes, write{want: s.want, decision: s.action.Decision, reason: s.action.Reason, before: s.live, result: result})
	return nil
}

// write applies or replaces one object: the very one that was decided about, or none.
func (ap applier) write(ctx context.Context, s decision) (*unstructured.Unstructured, error) {
	if s.live == nil || s.want.Policy.Apply == "replace" {
		return s.send(ctx, ap.Cluster)
	}
	if s.onlyMarks() {
		return ap.mark(ctx, s)
	}
	if s.action.Decision == ownership.Adopt {
		if err := ap.removeForeignController(ctx, s); err != nil {
			return nil, err
		}
	}
	if fields := ownership.ReplicasToHandOver(s.want, s.live); fields != nil {
		if err := ap.Cluster.HandOver(ctx, fields); err != nil {
			return nil, err
		}
	}
	return s.send(ctx, ap.Cluster)
}

// send sends the manifest of an object to a cluster.
func (s decision) send(ctx context.Context, to cluster.Cluster) (*unstructured.Unstructured, error) {
	if s.live == nil {
		return to.Apply(ctx, s.want.Manifest)
	}
	manifest := object.ShallowCopy(s.want.Manifest)
	manifest.SetUID(s.live.GetUID())
	if s.want.Policy.Apply != "replace" {
		return to.Apply(ctx, manifest)
	}
	manifest.SetResourceVersion(s.live.GetResourceVersion())
	manifest.SetFinalizers(s.live.GetFinalizers()) // other controllers depend on theirs
	return to.Replace(ctx, manifest)
}

// removeForeignController removes the owner reference to another controller from an adopted
// object: an object has one controller at most, and an apply does not remove what others wrote.
// The marks change in the same write, or an owner that goes by them would put its reference
// back at once. If that owner is a resource of the engine, the apply does all of it.
//
// It errors before it changes anything if the apply would be refused: an object that has the marks, and of
// which nothing was applied, would be pruned although it is somebody else's.
func (ap applier) removeForeignController(ctx context.Context, s decision) error {
	live, err := ap.Cluster.GetLive(ctx, s.want.Ref())
	if err != nil || live == nil || live.GetUID() != s.live.GetUID() {
		return err
	}
	refs := live.GetOwnerReferences()
	kept := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.Controller != nil && *ref.Controller && ref.UID != ap.in.Owner.UID && !ownership.ApplyRemovesOwnerReference(live, ref.UID)
	})
	if len(kept) == len(refs) {
		return nil
	}
	if err := ap.checkAdoption(ctx, s); err != nil {
		return err
	}
	live.SetOwnerReferences(kept)
	ownership.Mark(live, ap.in.Owner)
	_, err = ap.Cluster.Replace(ctx, live)
	return err
}

// checkAdoption asks the API server whether it would accept the manifest for the object that is being adopted. It
// leaves the owner references out, since the API server refuses a second controller. It also errors for an object
// that is to be recreated, whose controller need not be removed.
func (ap applier) checkAdoption(ctx context.Context, s decision) error {
	without := s
	without.want.Manifest = s.want.Manifest.DeepCopy()
	without.want.Manifest.SetOwnerReferences(nil)
	_, err := without.send(ctx, ap.Cluster.DryRun())
	if apierrors.IsInvalid(err) || ap.wouldBeRefused(ctx, s, err) {
		return err
	}
	return nil
}

// recreate deletes an object whose update the validation of its kind refuses; a later rollout creates it
// anew. It does so only if a new object with this manifest would be accepted: a mistake in the
// manifest, or a policy that denies its creation, must not cost the running object.
func (ap applier) recreate(ctx context.Context, s decision, out *application, refused error) error {
	switch err := ap.Cluster.Probe(ctx, s.want.Manifest); {
	case err == nil:
	case isRefusedCreation(err):
		return refused
	default:
		return err // the API server did not say, and is asked again
	}
	if err := ap.Cluster.Delete(ctx, s.want.Ref(), s.live.GetUID()); err != nil {
		return err
	}
	out.recreated = append(out.recreated, s.want)
	out.outcome = waiting(s.want.Component, status.ReasonObjectGoing, fmt.Sprintf("%s: it is deleted to be created anew: %v", s.want.Ref(), refused))
	return nil
}

// isRefusedCreation reports whether the API server says that it would not create an object.
func isRefusedCreation(err error) bool { return isRejection(err) || apierrors.IsForbidden(err) }

// onlyMarks reports whether a decision writes nothing but the marks of an object.
func (s decision) onlyMarks() bool {
	return s.live != nil && s.action.Decision == ownership.Repair && s.want.Policy.Apply == "createOnly"
}

// mark writes the marks of an object whose policy leaves its content as it is.
func (ap applier) mark(ctx context.Context, s decision) (*unstructured.Unstructured, error) {
	live, err := ap.Cluster.GetLive(ctx, s.want.Ref())
	if err != nil {
		return nil, err
	}
	if live == nil || live.GetUID() != s.live.GetUID() {
		return nil, fmt.Errorf("%s: it was replaced while it was being marked", s.want.Ref())
	}
	ownership.CopyMarks(live, s.want)
	return ap.Cluster.Replace(ctx, live)
}
