package rollout

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/verify"
)

// An object that has finished and is gone, such as a Job with a TTL, counts as existing as long as
// the package renders the content that it ran with. The inventory says how it finished. If it
// finished and went between two rollouts, Engine.FinishedObject has its last watch event.
//
// A failed object counts only if it has a TTL: a user who deletes another one wants a new one.

// gone is an object that has finished and does not exist any more.
type gone struct {
	place
	entry ownership.Entry
	// seen is what the package sees of it.
	seen *unstructured.Unstructured
}

// findFinished finds the objects of the inventory that have finished and are gone, or are being
// deleted.
func (obs *observed) findFinished() {
	obs.gone = map[cluster.Ref]gone{}
	for component, e := range obs.inventory.Entries() {
		ref := e.Ref(obs.in.Owner.Namespace)
		if !obs.mayHaveFinished(ref) {
			continue
		}
		live := obs.live[component][e.Object]
		if live != nil && (live.GetDeletionTimestamp() == nil || finishState(live) == ownership.NotFinished) {
			continue
		}
		if last := obs.lastSeen(ref, live); last != nil && e.Ended == ownership.NotFinished {
			obs.inventory = obs.inventory.WithFinished(obs.in.Owner.Namespace, last, finishState(last))
			e, _, _ = obs.inventory.Find(ref, obs.in.Owner.Namespace)
		}
		if e.Ended == ownership.NotFinished || (e.Ended == ownership.Failed && obs.in.Requested) {
			continue
		}
		delete(obs.live[component], e.Object)
		obs.gone[ref.Identity()] = gone{place{component, e.Object, ref}, e, e.FinishedObject(obs.in.Owner.Namespace)}
	}
}

// mayHaveFinished reports whether an object of the inventory is one that finishes, and is not unreadable: that one may exist.
func (obs *observed) mayHaveFinished(ref cluster.Ref) bool {
	return ownership.MayFinish(ref.GroupKind()) && !obs.unreadable[ref.Identity()]
}

// lastSeen returns the last state of an object of the resource that has finished and is gone or
// being deleted, or nil.
func (obs *observed) lastSeen(ref cluster.Ref, live *unstructured.Unstructured) *unstructured.Unstructured {
	if live != nil {
		return live
	}
	if obs.FinishedObject == nil {
		return nil
	}
	last := obs.FinishedObject(ref)
	if situation, _ := ownership.Classify(last, obs.in.Owner); situation != ownership.Owned && situation != ownership.Terminating {
		return nil
	}
	return last
}

// finishState returns how an object has finished, as the inventory keeps it.
func finishState(u *unstructured.Unstructured) ownership.FinishState {
	switch health := verify.Completion(u); {
	case health == verify.Ready:
		return ownership.Succeeded
	case health == verify.Failed && verify.HasTTL(u):
		return ownership.Failed
	}
	return ownership.NotFinished
}

// withFinished returns the inventory with how the live objects have finished.
func (obs *observed) withFinished(inventory ownership.Inventory) ownership.Inventory {
	for u := range obs.live.all() {
		if ownership.MayFinish(u.GroupVersionKind().GroupKind()) {
			inventory = inventory.WithFinished(obs.in.Owner.Namespace, u, finishState(u))
		}
	}
	return inventory
}

// updateFinished compares the finished objects that are gone with what is rendered now. It forgets
// an object that ran with other content, and moves one that another component renders now. It
// reports whether the package sees something else as a result.
func (ev *evaluated) updateFinished(ctx context.Context) bool {
	changed := false
	for _, c := range ev.rollout.Components {
		for _, o := range c.Objects {
			g, known := ev.gone[ev.refOf(ctx, o).Identity()]
			switch {
			case !known || c.Rendering != program.RenderedComplete:
			case !g.entry.RanWith(o.Manifest, ev.keyOf(c.Name, o)):
				delete(ev.gone, g.ref.Identity())
				changed = true
			case !ev.renders(ctx, g.place):
				g.component, g.object = c.Name, o.Name
				ev.gone[g.ref.Identity()] = g
				changed = true
			}
		}
	}
	return changed
}

// renders reports whether the package still renders an object at a place.
func (ev *evaluated) renders(ctx context.Context, p place) bool {
	c, _ := ev.component(p.component)
	return slices.ContainsFunc(c.Objects, func(o program.Object) bool {
		return o.Name == p.object && ev.refOf(ctx, o).Identity() == p.ref.Identity()
	})
}

// finished reports whether an object has finished with the desired content and is gone.
func (obs *observed) finished(d ownership.Desired) bool {
	g, known := obs.gone[d.Ref().Identity()]
	return known && obs.live[d.Component][d.Object] == nil && g.entry.RanWith(d.Manifest.Object, d.Key)
}
