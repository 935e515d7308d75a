package rollout

import (
	"context"
	"fmt"
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
func (r *run) findFinished() {
	r.gone = map[cluster.Ref]gone{}
	for _, g := range r.inventory {
		for _, e := range g.Objects {
			if !ownership.MayFinish(e.Ref("").GroupKind()) {
				continue
			}
			ref := e.Ref(r.in.Owner.Namespace)
			live := r.live[g.Component][e.Object]
			if live != nil && (live.GetDeletionTimestamp() == nil || ending(live) == ownership.NotFinished) {
				continue
			}
			if last := r.lastSeen(ref, live); last != nil && e.Ended == ownership.NotFinished {
				r.inventory = r.inventory.WithFinished(r.in.Owner.Namespace, last, ending(last))
				e, _, _ = r.inventory.Find(ref, r.in.Owner.Namespace)
			}
			if e.Ended == ownership.NotFinished || (e.Ended == ownership.Failed && r.in.Requested) {
				continue
			}
			delete(r.live[g.Component], e.Object)
			r.gone[ref.Identity()] = gone{place{g.Component, e.Object, ref}, e, e.Remembered(r.in.Owner.Namespace)}
		}
	}
}

// isGone reports whether an object that is about to go counts as gone.
func (r *run) isGone(u *unstructured.Unstructured) bool {
	_, known := r.gone[cluster.RefOf(u).Identity()]
	return known
}

// lastSeen returns the last state of an object of the resource that has ended and is
// gone, or nil. One that is about to go is there to be seen.
func (r *run) lastSeen(ref cluster.Ref, live *unstructured.Unstructured) *unstructured.Unstructured {
	if live != nil {
		return live
	}
	if r.FinishedObject == nil {
		return nil
	}
	last := r.FinishedObject(ref)
	if situation, _ := ownership.Classify(last, r.in.Owner); situation != ownership.Owned && situation != ownership.Terminating {
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
func (r *run) endings(inventory ownership.Inventory) ownership.Inventory {
	for _, u := range r.live.all() {
		if ownership.MayFinish(u.GroupVersionKind().GroupKind()) {
			inventory = inventory.WithFinished(r.in.Owner.Namespace, u, ending(u))
		}
	}
	return inventory
}

// compareGone compares what has ended with what the package wants by now, and reports
// whether the package sees something else than before: what ended with other content is
// forgotten, and what another component has taken over is seen there.
func (r *run) compareGone(ctx context.Context) bool {
	changed := false
	for _, c := range r.rollout.Components {
		for _, o := range c.Objects {
			g, known := r.gone[r.refOf(ctx, o).Identity()]
			switch {
			case !known || c.Rendering != program.RenderedComplete:
			case !g.entry.Ran(o.Manifest, r.keyOf(c.Name, o)):
				delete(r.gone, g.ref.Identity())
				changed = true
			case !r.renders(ctx, g.place): // it has moved here
				g.component, g.object = c.Name, o.Name
				r.gone[g.ref.Identity()] = g
				changed = true
			}
		}
	}
	return changed
}

// renders reports whether the package still renders an object at a place.
func (r *run) renders(ctx context.Context, p place) bool {
	c, _ := r.component(p.component)
	return slices.ContainsFunc(c.Objects, func(o program.Object) bool {
		return o.Name == p.object && r.refOf(ctx, o).Identity() == p.ref.Identity()
	})
}

// over reports whether an object that has ended and is gone has the content that is wanted.
func (r *run) over(d ownership.Desired) bool {
	g, known := r.gone[d.Ref().Identity()]
	return known && r.live[d.Component][d.Object] == nil && g.entry.Ran(d.Manifest.Object, d.Key)
}

// healthOf judges an object of a component, which may be gone.
func (r *run) healthOf(ctx context.Context, c program.Component, o program.Object) verify.Judgement {
	live := r.live[c.Name][o.Name]
	if g, known := r.gone[r.refOf(ctx, o).Identity()]; known && live == nil {
		return goneWell(g, o.Policy.Verify)
	}
	return r.health(ctx, live, o.Policy.Verify)
}

// goneWell judges an object that has ended and is gone.
func goneWell(g gone, policy string) verify.Judgement {
	if g.entry.Ended == ownership.Succeeded || policy != "ready" {
		return verify.Judgement{Health: verify.Ready}
	}
	return verify.Judgement{Health: verify.Failed, Message: fmt.Sprintf("the %s has failed, and has removed itself; "+
		"it runs again when its content changes, or when the annotation operetta.dev/reconcile-at is set to something else", g.ref.Kind)}
}
