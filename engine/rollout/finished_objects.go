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

// An object that has ended and is gone, such as a Job that removes itself, counts as
// being there as long as the package wants just what it did. It is in the inventory,
// with how it ended. What ended and went between two rollouts is known from what the
// watch said last, which Engine.Ended returns.
//
// What has failed counts only if it removes itself: whoever deletes another one asks
// for a new one.

// gone is an object that has ended and is not there any more.
type gone struct {
	place
	entry ownership.Entry
	// seen is what the package sees of it.
	seen *unstructured.Unstructured
}

// remember finds the objects of the inventory that have ended and are gone, or about
// to be.
func (obs *observed) findFinished() {
	obs.gone = map[cluster.Ref]gone{}
	for _, g := range obs.inventory {
		for _, e := range g.Objects {
			if !ownership.MayFinish(e.Ref("").GroupKind()) {
				continue
			}
			ref := e.Ref(obs.in.Owner.Namespace)
			live := obs.live[g.Component][e.Object]
			if live != nil && (live.GetDeletionTimestamp() == nil || ending(live) == ownership.NotFinished) {
				continue
			}
			if last := obs.lastSeen(ref, live); last != nil && e.Ended == ownership.NotFinished {
				obs.inventory = obs.inventory.WithFinished(obs.in.Owner.Namespace, last, ending(last))
				e, _, _ = obs.inventory.Find(ref, obs.in.Owner.Namespace)
			}
			if e.Ended == ownership.NotFinished || (e.Ended == ownership.Failed && obs.in.Requested) {
				continue
			}
			delete(obs.live[g.Component], e.Object)
			obs.gone[ref.Identity()] = gone{place{g.Component, e.Object, ref}, e, e.Remembered(obs.in.Owner.Namespace)}
		}
	}
}

// isGone reports whether an object that is about to go counts as gone.
func (obs *observed) isGone(u *unstructured.Unstructured) bool {
	_, known := obs.gone[cluster.RefOf(u).Identity()]
	return known
}

// lastSeen returns the last state of an object of the resource that has ended and is
// gone, or nil. One that is about to go is there to be seen.
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

// ending returns how an object has ended, as the inventory keeps it.
func ending(u *unstructured.Unstructured) ownership.FinishState {
	switch health := verify.Completion(u); {
	case health == verify.Ready:
		return ownership.Succeeded
	case health == verify.Failed && verify.HasTTL(u):
		return ownership.Failed
	}
	return ownership.NotFinished
}

// endings returns the inventory with how the objects have ended that are there.
func (obs *observed) withFinished(inventory ownership.Inventory) ownership.Inventory {
	for u := range obs.live.all() {
		if ownership.MayFinish(u.GroupVersionKind().GroupKind()) {
			inventory = inventory.WithFinished(obs.in.Owner.Namespace, u, ending(u))
		}
	}
	return inventory
}

// updateFinished compares what has ended with what the package wants by now, and reports
// whether the package sees something else than before: what ended with other content is
// forgotten, and what another component has taken over is seen there.
func (ev *evaluated) updateFinished(ctx context.Context) bool {
	changed := false
	for _, c := range ev.rollout.Components {
		for _, o := range c.Objects {
			g, known := ev.gone[ev.refOf(ctx, o).Identity()]
			switch {
			case !known || c.Rendering != program.RenderedComplete:
			case !g.entry.Ran(o.Manifest, ev.keyOf(c.Name, o)):
				delete(ev.gone, g.ref.Identity())
				changed = true
			case !ev.renders(ctx, g.place): // it has moved here
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

// over reports whether an object that has ended and is gone has the content that is wanted.
func (obs *observed) over(d ownership.Desired) bool {
	g, known := obs.gone[d.Ref().Identity()]
	return known && obs.live[d.Component][d.Object] == nil && g.entry.Ran(d.Manifest.Object, d.Key)
}
