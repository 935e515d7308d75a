package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
)

// withinReach returns an inventory without what is out of the owner's reach, and what is
// to be said of that: it is neither read nor written nor deleted.
func withinReach(owner ownership.Owner, inventory ownership.Inventory) (ownership.Inventory, []Event) {
	var left []Event
	out := inventory.Keeping(func(component string, e ownership.Entry) bool {
		ref := e.Ref(owner.Namespace)
		reached := owner.Reaches(ref)
		if !reached {
			left = append(left, outOfReach(ref, component))
		}
		return reached
	})
	return out, left
}

// resolveOwnership settles whose an object is where that depends on what else is there.
func (ap applier) resolveOwnership(ctx context.Context, s *step) error {
	switch s.action.Verb {
	case ownership.Keep, ownership.Refuse, ownership.WaitForDeletion:
		return nil
	case ownership.Create:
		return ap.checkOwnerNotDeletedBeforeRestore(ctx, s)
	case ownership.Conflict:
		return ap.adoptFromDeletedOwner(ctx, s)
	case ownership.Update, ownership.Repair, ownership.Adopt:
	}
	return ap.checkOwnerNotDeleted(ctx, s)
}

// checkOwnerNotDeleted makes sure that an object which has lost its reference to the custom
// resource may have it again. It may not when the resource is on its way out: then the
// garbage collector has released the object, for kubectl delete --cascade=orphan, and
// the deletion of the resource has not reached this process yet. Caches of different
// kinds are not in step, so the API server is asked.
func (ap applier) checkOwnerNotDeleted(ctx context.Context, s *step) error {
	if len(s.want.Manifest.GetOwnerReferences()) == 0 || !ownership.LacksOwnerReference(s.live, ap.in.Owner) {
		return nil
	}
	going, err := ap.ownerDeleted(ctx)
	if going {
		s.action = ownership.Action{Verb: ownership.WaitForDeletion, Reason: "its " + ap.in.Owner.Kind + " is being deleted"}
	}
	return err
}

// checkOwnerNotDeletedBeforeRestore makes sure that an object which was there and is gone may be made anew. It may
// not when the garbage collector has taken it because the resource is on its way out, and
// the deletion of the resource has not reached this process yet.
func (ap applier) checkOwnerNotDeletedBeforeRestore(ctx context.Context, s *step) error {
	if e, _, known := ap.in.Inventory.Find(s.want.Ref(), ap.in.Owner.Namespace); !known || e.Digest == "" {
		return nil
	}
	going, err := ap.ownerDeleted(ctx)
	if going {
		s.action = ownership.Action{Verb: ownership.WaitForDeletion, Reason: "its " + ap.in.Owner.Kind + " is being deleted"}
	}
	return err
}

// ownerDeleted reports whether the custom resource is being deleted, is gone, or is
// another one of the same name by now.
func (ap applier) ownerDeleted(ctx context.Context) (bool, error) {
	o := ap.in.Owner
	u, err := ap.Cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: o.GroupVersionKind, Namespace: o.Namespace, Name: o.Name})
	if cluster.IsKindNotServed(err) {
		return false, nil // a rehearsal has no resources
	}
	if err != nil {
		return false, err
	}
	return u == nil || u.GetUID() != o.UID || u.GetDeletionTimestamp() != nil, nil
}

// onlyMarks reports whether a step writes nothing of an object but its marks.
func (s step) onlyMarks() bool {
	return s.live != nil && s.action.Verb == ownership.Repair && s.want.Policy.Apply == "createOnly"
}

// mark marks an object anew whose content its policy leaves as it is.
func (ap applier) mark(ctx context.Context, s step) (*unstructured.Unstructured, error) {
	live, err := ap.Cluster.GetLive(ctx, s.want.Ref())
	if err != nil {
		return nil, err
	}
	if live == nil || live.GetUID() != s.live.GetUID() {
		return nil, fmt.Errorf("%s: it was replaced while it was being marked", s.want.Ref())
	}
	ownership.Remark(live, s.want)
	return ap.Cluster.Replace(ctx, live)
}

// adoptFromDeletedOwner adopts an object that another resource would keep if that one is gone, as
// it is when the object was left behind. Only resources of the own kind are looked
// for: the operator may not read others, and those are taken to be there.
func (ap applier) adoptFromDeletedOwner(ctx context.Context, s *step) error {
	claim, _ := ownership.ClaimOn(s.live)
	if claim.Evidence == ownership.ByReference || claim.Kind != ap.in.Owner.GroupKind() {
		return nil
	}
	ref := cluster.Ref{GroupVersionKind: ap.in.Owner.GroupVersionKind, Namespace: claim.Key.Namespace, Name: claim.Key.Name}
	u, err := ap.Cluster.GetLive(ctx, ref)
	if cluster.IsKindNotServed(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err == nil && u == nil {
		s.action = ownership.Action{Verb: ownership.Adopt, Reason: "taken over from " + claim.Mark + ", which is gone"}
	}
	return err
}
