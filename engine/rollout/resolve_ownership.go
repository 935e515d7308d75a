package rollout

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
)

// withinReach returns an inventory without the objects that are out of the owner's reach, and an
// event for each: they are neither read nor written nor deleted.
func withinReach(ctx context.Context, c cluster.Cluster, owner ownership.Owner, inventory ownership.Inventory) (ownership.Inventory, []Event) {
	var events []Event
	out := inventory.Filtered(func(component string, e ownership.Entry) bool {
		ref := e.Ref(owner.Namespace)
		reached := reaches(ctx, c, owner, ref)
		if !reached {
			events = append(events, outOfReach(ref, component))
		}
		return reached
	})
	return out, events
}

// reaches reports whether an owner may have the object of an entry. An object of a cluster-scoped kind has no namespace, whatever the
// entry says: it would hide there from the reach, and would have to be read to find that out, which the operator may lack the right to.
func reaches(ctx context.Context, c cluster.Cluster, owner ownership.Owner, ref cluster.Ref) bool {
	if !owner.Reaches(ref) {
		return false
	}
	if ref.Namespace == "" {
		return true
	}
	scope, err := c.Scope(ctx, ref.GroupVersionKind)
	if err != nil || scope != cluster.ClusterScoped {
		return true
	}
	ref.Namespace = ""
	return owner.Reaches(ref)
}

// resolveOwnership decides who owns an object where that depends on other objects. Caches of
// different kinds are not in step: the deletion of the custom resource may not have reached this
// process when the garbage collector has deleted an object of it, or has released it for
// kubectl delete --cascade=orphan. Such an object must be neither created again nor owned again.
func (ap applier) resolveOwnership(ctx context.Context, s *decision) error {
	switch s.action.Decision {
	case ownership.Keep, ownership.Refuse, ownership.WaitForDeletion:
		return nil
	case ownership.Conflict:
		return ap.adoptFromDeletedOwner(ctx, s)
	case ownership.Create:
		if e, known := ap.stored[s.want.Ref().Identity()]; !known || e.Digest == "" {
			return nil
		}
	case ownership.Update, ownership.Repair, ownership.Adopt:
		if len(s.want.Manifest.GetOwnerReferences()) == 0 || !ownership.LacksOwnerReference(s.live, ap.in.Owner) {
			return nil
		}
	}
	return ap.checkOwnerNotDeleted(ctx, s)
}

// checkOwnerNotDeleted makes an object wait if the custom resource is being deleted, is gone, or has
// been replaced by another one of its name.
func (ap applier) checkOwnerNotDeleted(ctx context.Context, s *decision) error {
	o := ap.in.Owner
	u, err := ap.Cluster.GetLive(ctx, o.Ref)
	switch {
	case cluster.IsKindNotServed(err): // a dry run has no resources
		return nil
	case err != nil:
		return err
	case u == nil || u.GetUID() != o.UID || u.GetDeletionTimestamp() != nil:
		s.action = ownership.Action{Decision: ownership.WaitForDeletion, Reason: "its " + o.Kind + " is being deleted"}
	}
	return nil
}

// adoptFromDeletedOwner adopts an object that another resource has left behind, which is the case
// if that resource is gone. It only looks for resources of the owner's kind: the operator may not
// read others, so those count as existing.
func (ap applier) adoptFromDeletedOwner(ctx context.Context, s *decision) error {
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
		s.action = ownership.Action{Decision: ownership.Adopt, Reason: "taken over from " + claim.Mark + ", which is gone"}
	}
	return err
}
