package rollout

import (
	"context"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/plan"
)

// adoptable makes sure that an object which has lost its reference to the custom
// resource may have it again. It may not when the resource is on its way out: then the
// garbage collector has released the object, for kubectl delete --cascade=orphan, and
// the deletion of the resource has not reached this process yet. Caches of different
// kinds are not in step, so the API server is asked.
func (r *run) adoptable(ctx context.Context, s *step) error {
	switch s.action.Verb {
	case plan.Keep, plan.Create, plan.Refuse, plan.Await:
		return nil
	case plan.Update, plan.Repair, plan.Adopt:
	}
	if len(s.want.Manifest.GetOwnerReferences()) == 0 || !plan.Released(s.live, r.in.Owner) {
		return nil
	}
	going, err := r.ownerGoing(ctx)
	if going {
		s.action = plan.Action{Verb: plan.Await, Reason: "its " + r.in.Owner.Kind + " is being deleted"}
	}
	return err
}

// ownerGoing reports whether the custom resource is being deleted, is gone, or is
// another one of the same name by now.
func (r *run) ownerGoing(ctx context.Context) (bool, error) {
	o := r.in.Owner
	u, err := r.Cluster.Read(ctx, cluster.Ref{GroupVersionKind: o.GroupVersionKind, Namespace: o.Namespace, Name: o.Name})
	if cluster.IsKindNotServed(err) {
		return false, nil // a rehearsal has no resources
	}
	if err != nil {
		return false, err
	}
	return u == nil || u.GetUID() != o.UID || u.GetDeletionTimestamp() != nil, nil
}
