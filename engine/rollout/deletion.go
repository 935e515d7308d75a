package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/status"
)

// A deletion takes objects out of an inventory and out of the cluster, those of
// dependents first. It is the same for pruning and for teardown.
type deletion struct {
	cluster   cluster.Cluster
	owner     ownership.Owner
	inventory ownership.Inventory
	doomed    map[ownership.Entry]bool
	// backwards is the order, of the inventory as it was at first: what has left it
	// since holds nothing back.
	backwards ownership.DeletionOrder
	// teardown says that the owner is being deleted.
	teardown bool

	waits map[string][]string
	order []string
	// later are the components whose objects wait for those of others, and which ones.
	later map[string][]string
	// unobserved says of each kind that was looked at whether it cannot be observed.
	unobserved map[schema.GroupVersionKind]bool
	// again is when to look again for what no event tells of, or 0.
	again time.Duration
	// refused are the components that have an object which could not be deleted.
	refused  map[string]bool
	events   []Event
	failures []error
}

// deletePass goes over the inventory until nothing more can be deleted now. An object
// leaves the inventory when it is confirmed to be absent, which frees what it
// depended on.
func (d *deletion) deletePass(ctx context.Context) {
	d.backwards, d.owner, d.unobserved = d.inventory.DeletionOrder(), d.owner.WithInventory(d.inventory), map[schema.GroupVersionKind]bool{}
	for progress := true; progress; {
		progress = false
		d.waits, d.order, d.later, d.refused = map[string][]string{}, nil, map[string][]string{}, map[string]bool{}
		d.failures, d.again = nil, 0 // what is refused is tried again with each round
		for _, g := range d.inventory {
			for _, e := range g.Objects {
				if d.doomed[e] && d.remove(ctx, g.Component, e) {
					progress = true
				}
			}
		}
	}
}

// remove deletes one object unless a dependent is still there, and reports
// whether it is gone.
func (d *deletion) remove(ctx context.Context, component string, e ownership.Entry) bool {
	if blockers := d.backwards.Blocked(component, d.remains); len(blockers) > 0 {
		d.wait(component, fmt.Sprintf("%s waits for the deletion of %s", e.Ref(d.owner.Namespace), strings.Join(blockers, ", ")))
		d.later[component] = blockers
		return false
	}
	gone, err := d.delete(ctx, component, e)
	if err != nil {
		d.failures = append(d.failures, err)
		d.refused[component] = true
		d.wait(component, err.Error())
		return false
	}
	if gone {
		d.inventory = d.inventory.Without(component, e)
		delete(d.doomed, e)
	}
	return gone
}

// remains reports whether an object of a component is still to be deleted.
func (d *deletion) remains(component string) bool {
	i := slices.IndexFunc(d.inventory, func(g ownership.Group) bool { return g.Component == component })
	return i >= 0 && slices.ContainsFunc(d.inventory[i].Objects, func(e ownership.Entry) bool { return d.doomed[e] })
}

// delete deletes one object that is the owner's, and reports whether it is gone
// from the API server, and not only from a cache.
func (d *deletion) delete(ctx context.Context, component string, e ownership.Entry) (bool, error) {
	ref := e.Ref(d.owner.Namespace)
	if d.owner.Reach != nil && !d.owner.Reaches(ref) {
		d.events = append(d.events, outOfReach(ref, component))
		return true, nil
	}
	live, err := d.look(ctx, ref)
	if cluster.IsKindNotServed(err) {
		return true, nil // its definition is gone, and took the objects with it
	}
	if err != nil {
		return false, err
	}
	situation, whose := ownership.Classify(live, d.owner)
	switch situation {
	case ownership.Absent, ownership.Predecessor:
		return true, nil // nothing of ours is there
	case ownership.Foreign, ownership.Unproven, ownership.OutOfReach:
		d.leave(component, e, situation, whose)
		return true, nil
	case ownership.Terminating:
		d.noteTerminating(component, live)
		return false, nil
	case ownership.Owned:
	}
	if e.Orphan || (d.teardown && ownership.Released(live, d.owner)) {
		d.events = append(d.events, orphaned(ref, component))
		return true, nil
	}
	if err := d.cluster.Delete(ctx, ref, live.GetUID()); err != nil {
		return false, err
	}
	// Most objects are gone at once; looking now saves a rollout.
	left, err := d.cluster.GetLive(ctx, ref)
	if err != nil {
		return false, err
	}
	if left != nil && left.GetUID() != live.GetUID() {
		return d.replaced(component, ref, left)
	}
	d.events = append(d.events, Event{Reason: "Deleted", Message: fmt.Sprintf("Deleted %s of component %s", ref, component)})
	if left == nil {
		return true, nil
	}
	d.noteTerminating(component, left)
	return false, nil
}

// leave says of an object why it stays, although the inventory says that it was written
// for the resource: nothing on the object itself does.
func (d *deletion) leave(component string, e ownership.Entry, situation ownership.Situation, whose string) {
	ref := e.Ref(d.owner.Namespace)
	switch {
	case situation == ownership.OutOfReach:
		d.events = append(d.events, outOfReach(ref, component))
	case situation == ownership.Unproven && e.Orphan:
		d.events = append(d.events, orphaned(ref, component))
	case situation == ownership.Unproven:
		d.events = append(d.events, Event{Reason: "Kept", Warning: true, Message: fmt.Sprintf("Kept %s of component %s: the marks that prove whose it is are not there; delete it if nobody needs it", ref, component)})
	case e.UID != "": // one without was never there
		d.events = append(d.events, Event{Reason: "Kept", Message: fmt.Sprintf("Kept %s of component %s: it belongs to %s", ref, component, whose)})
	}
}

// orphaned says of an object that it was left behind, as it should be.
func orphaned(ref cluster.Ref, component string) Event {
	return Event{Reason: "Orphaned", Message: fmt.Sprintf("Left %s of component %s behind", ref, component)}
}

// outOfReach says of an entry of the inventory that nothing is done about it.
func outOfReach(ref cluster.Ref, component string) Event {
	return Event{Reason: "OutOfReach", Warning: true, Message: fmt.Sprintf("Left %s of component %s alone: the package does not reach there, and the inventory alone proves nothing", ref, component)}
}

// noteTerminating notes an object that is on its way out. One without the owner's label is in no
// cache, as are those of a kind that cannot be observed: no event tells of its end.
func (d *deletion) noteTerminating(component string, u *unstructured.Unstructured) {
	d.wait(component, cluster.RefOf(u).String()+" is being deleted"+finalizers(u.GetFinalizers())+complaint(u))
	if d.unobserved[u.GroupVersionKind()] || u.GetLabels()[ownership.OwnerLabel] != d.owner.Label() {
		d.again = retryAfter
	}
}

// replaced decides about an object that took the place of the one that was to be
// deleted. It stays, unless it is the owner's as well.
func (d *deletion) replaced(component string, ref cluster.Ref, by *unstructured.Unstructured) (bool, error) {
	if situation, whose := ownership.Classify(by, d.owner); situation == ownership.Foreign || situation == ownership.Unproven {
		d.events = append(d.events, Event{Reason: "Kept", Message: fmt.Sprintf("Kept %s of component %s: it was replaced by one that belongs to %s", ref, component, whose)})
		return true, nil
	}
	return false, fmt.Errorf("%s: it was replaced while it was being deleted", ref)
}

// look reads an object from the API server, and makes sure before that its end will
// be noticed: a process that was started for the deletion watches nothing yet. An
// object of a kind that cannot be observed can be deleted all the same.
func (d *deletion) look(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if _, tried := d.unobserved[ref.GroupVersionKind]; !tried {
		_, err := d.cluster.GetCached(ctx, ref)
		if cluster.IsKindNotServed(err) {
			return nil, err
		}
		d.unobserved[ref.GroupVersionKind] = err != nil
	}
	return d.cluster.GetLive(ctx, ref)
}

func (d *deletion) wait(component, message string) {
	if _, seen := d.waits[component]; !seen {
		d.order = append(d.order, component)
	}
	d.waits[component] = append(d.waits[component], message)
}

// message says what is still to be deleted.
func (d *deletion) message() string {
	var out []string
	for _, component := range d.order {
		out = append(out, d.waits[component]...)
	}
	return status.List(out)
}

// finalizers names what holds an object. Foreground deletion is the API server's
// own, and passes by itself.
func finalizers(names []string) string {
	var held []string
	for _, n := range names {
		if n != "foregroundDeletion" {
			held = append(held, n)
		}
	}
	if len(held) == 0 {
		return ""
	}
	return ", held by the finalizer " + strings.Join(held, ", ")
}
