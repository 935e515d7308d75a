package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/status"
)

// A deletion deletes objects of an inventory, those of dependents first. Pruning and teardown
// share it.
type deletion struct {
	cluster   cluster.Cluster
	owner     ownership.Owner
	inventory ownership.Inventory
	// unwanted are the entries of the inventory that are to be deleted.
	unwanted map[ownership.Entry]bool
	// order is the deletion order of the inventory as it was at first.
	order ownership.DeletionOrder
	// teardown says that the owner is being deleted.
	teardown bool

	// waits are what each component waits for.
	waits map[string][]string
	// blocked are the components whose objects wait for those of others, and which ones.
	blocked map[string][]string
	// unwatched says of each kind that was looked at whether it cannot be watched.
	unwatched map[schema.GroupVersionKind]bool
	// requeueAfter is when to look again at what no watch event reports, or 0.
	requeueAfter time.Duration
	// notOwned is how many objects were looked for that the owner does not have, and moreEntries says that others are
	// looked for in the next reconcile.
	notOwned    int
	moreEntries bool
	// refusals counts the reads of objects that the API server has refused, by kind and namespace.
	refusals map[cluster.Ref]int
	// refused are the components with an object that could not be deleted.
	refused  map[string]bool
	events   []Event
	failures []error
}

// run goes over the inventory until nothing more can be deleted now. An object leaves the
// inventory when its absence is confirmed, and what it depended on may be deleted then.
func (d *deletion) run(ctx context.Context) {
	d.order, d.owner, d.unwatched = d.inventory.DeletionOrder(), d.owner.WithInventory(d.inventory), map[schema.GroupVersionKind]bool{}
	for progress := true; progress; {
		progress = false
		d.waits, d.blocked, d.refused = map[string][]string{}, map[string][]string{}, map[string]bool{}
		d.failures, d.requeueAfter, d.moreEntries, d.refusals = nil, 0, false, map[cluster.Ref]int{} // each round retries what was refused
		for component, e := range d.inventory.Entries() {
			if d.unwanted[e] && d.remove(ctx, component, e) {
				progress = true
			}
		}
	}
	if d.moreEntries {
		d.requeueAfter = ShortestWait(d.requeueAfter, moreEntriesAgain)
	}
}

// remove deletes one object unless a dependent still exists, and reports whether it is gone.
func (d *deletion) remove(ctx context.Context, component string, e ownership.Entry) bool {
	if blockers := d.order.Blocked(component, d.remains); len(blockers) > 0 {
		d.wait(component, fmt.Sprintf("%s waits for the deletion of %s", e.Ref(d.owner.Namespace), strings.Join(blockers, ", ")))
		d.blocked[component] = blockers
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
	}
	return gone
}

// remains reports whether an object of a component is still to be deleted.
func (d *deletion) remains(component string) bool {
	i := slices.IndexFunc(d.inventory, func(g ownership.Group) bool { return g.Component == component })
	return i >= 0 && slices.ContainsFunc(d.inventory[i].Objects, func(e ownership.Entry) bool { return d.unwanted[e] })
}

// delete deletes one object if the owner owns it, and reports whether it is gone from the API
// server, not only from a cache.
func (d *deletion) delete(ctx context.Context, component string, e ownership.Entry) (bool, error) {
	ref := e.Ref(d.owner.Namespace)
	if d.owner.Reach != nil && !reaches(ctx, d.cluster, d.owner, ref) {
		d.events = append(d.events, outOfReach(ref, component))
		return true, nil
	}
	if d.notOwned >= maxNotOwned {
		d.noteMoreEntries(component)
		return false, nil
	}
	if d.isRefused(ref) {
		d.refused[component] = true
		d.waitOnce(component, refusedAlike)
		return false, nil
	}
	ref, live, err := d.lookInAnyVersion(ctx, ref)
	if err != nil {
		return false, err
	}
	situation, whose := ownership.Classify(live, d.owner)
	switch situation {
	case ownership.Absent, ownership.Predecessor, ownership.Foreign, ownership.Unproven, ownership.OutOfReach:
		d.notOwned++
		d.noteKept(component, e, situation, whose)
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
	// Most objects are gone at once; a live read now saves a rollout.
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

// noteKept records why an object of the inventory is not deleted: the object itself does not say that
// it belongs to the owner.
func (d *deletion) noteKept(component string, e ownership.Entry, situation ownership.Situation, whose string) {
	ref := e.Ref(d.owner.Namespace)
	switch {
	case situation == ownership.Absent, situation == ownership.Predecessor: // the owner has no such object
	case situation == ownership.OutOfReach:
		d.events = append(d.events, outOfReach(ref, component))
	case situation == ownership.Unproven && e.Orphan:
		d.events = append(d.events, orphaned(ref, component))
	case situation == ownership.Unproven:
		d.events = append(d.events, Event{Reason: "Kept", Warning: true, Message: fmt.Sprintf("Kept %s of component %s: the marks that prove its owner are missing; delete it if it is not needed", ref, component)})
	case e.UIDPrefix != "": // an object without was never created
		d.events = append(d.events, Event{Reason: "Kept", Message: fmt.Sprintf("Kept %s of component %s: it belongs to %s", ref, component, whose)})
	}
}

// orphaned is the event of an object that is left behind on purpose.
func orphaned(ref cluster.Ref, component string) Event {
	return Event{Reason: "Orphaned", Message: fmt.Sprintf("Left %s of component %s behind", ref, component)}
}

// outOfReach is the event of an entry of the inventory that is ignored.
func outOfReach(ref cluster.Ref, component string) Event {
	return Event{Reason: "OutOfReach", Warning: true, Message: fmt.Sprintf("Left %s of component %s alone: the package does not reach there, and the inventory alone proves nothing", ref, component)}
}

// noteTerminating notes an object that is being deleted. No watch event tells of its end if its
// kind cannot be watched, or if it lacks the owner's label by which the caches select.
func (d *deletion) noteTerminating(component string, u *unstructured.Unstructured) {
	d.wait(component, cluster.RefOf(u).String()+" is being deleted"+finalizers(u.GetFinalizers())+deletionStatus(u))
	if d.unwatched[u.GroupVersionKind()] || u.GetLabels()[ownership.OwnerLabel] != d.owner.Label() {
		d.requeueAfter = retryAfter
	}
}

// replaced decides about an object that took the place of the deleted one. It stays unless the
// owner owns it, too.
func (d *deletion) replaced(component string, ref cluster.Ref, by *unstructured.Unstructured) (bool, error) {
	if situation, whose := ownership.Classify(by, d.owner); situation == ownership.Foreign || situation == ownership.Unproven {
		d.events = append(d.events, Event{Reason: "Kept", Message: fmt.Sprintf("Kept %s of component %s: it was replaced by one that belongs to %s", ref, component, whose)})
		return true, nil
	}
	return false, fmt.Errorf("%s: it was replaced while it was being deleted", ref)
}

// lookInAnyVersion is look in the version of a kind that is served, which it returns in the reference: an upgrade of
// the cluster removes versions, and the objects stay. If none is served, the objects went with the definition of
// their kind, and there is no object.
func (d *deletion) lookInAnyVersion(ctx context.Context, ref cluster.Ref) (cluster.Ref, *unstructured.Unstructured, error) {
	live, err := d.look(ctx, ref)
	if !cluster.IsKindNotServed(err) {
		return ref, live, err
	}
	version, err := d.cluster.ServedVersion(ctx, ref.GroupKind())
	if err != nil || version == "" {
		return ref, nil, err
	}
	ref.Version = version
	live, err = d.look(ctx, ref)
	return ref, live, err
}

// look reads an object live. Before that, a cached read starts the watch that reports its end: a
// process that has just started watches nothing yet. An object whose kind cannot be watched can
// be deleted all the same.
func (d *deletion) look(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if _, tried := d.unwatched[ref.GroupVersionKind]; !tried {
		_, err := d.cluster.GetCached(ctx, ref)
		if cluster.IsKindNotServed(err) {
			return nil, err
		}
		d.unwatched[ref.GroupVersionKind] = err != nil
	}
	live, err := d.cluster.GetLive(ctx, ref)
	if apierrors.IsForbidden(err) {
		d.refusals[kindIn(ref)]++
	}
	return live, err
}

// How many reads the API server may refuse before no more objects are read in one round: so many of a kind in a namespace, and in so many
// of those. Anyone who may write the status can name thousands of objects that the operator may not read.
const (
	maxRefusals      = 10
	maxRefusedPlaces = 20
)

// isRefused reports whether enough reads were refused to leave out one more.
func (d *deletion) isRefused(ref cluster.Ref) bool {
	n, known := d.refusals[kindIn(ref)]
	return n >= maxRefusals || !known && len(d.refusals) >= maxRefusedPlaces
}

// kindIn returns a reference to a kind in a namespace.
func kindIn(ref cluster.Ref) cluster.Ref {
	out := ref.Identity()
	out.Name = ""
	return out
}

// maxNotOwned is how many entries of an inventory are looked for in one reconcile that turn out not to be the owner's, at most. Anyone who
// may write the status can name thousands, and each costs a request before the inventory forgets it.
const maxNotOwned = 400

// unowned reports whether the owner does not have the object of an entry. It reads few objects from the API server: none that is the
// owner's in the cache, and no more than maxNotOwned others.
func (d *deletion) unowned(ctx context.Context, component string, e ownership.Entry) (bool, error) {
	ref := e.Ref(d.owner.Namespace)
	if known, _ := d.cluster.GetCached(ctx, ref); d.owns(known) {
		return false, nil
	}
	if d.notOwned >= maxNotOwned {
		d.moreEntries = true
		return false, nil
	}
	if d.isRefused(ref) {
		return false, nil
	}
	d.notOwned++
	_, live, err := d.lookInAnyVersion(ctx, ref)
	if err != nil || d.owns(live) {
		return false, err
	}
	situation, whose := ownership.Classify(live, d.owner)
	d.noteKept(component, e, situation, whose)
	return true, nil
}

// owns reports whether an object is the owner's, as far as it says so.
func (d *deletion) owns(u *unstructured.Unstructured) bool {
	situation, _ := ownership.Classify(u, d.owner)
	return situation == ownership.Owned || situation == ownership.Terminating
}

// What a component waits for whose objects were not all looked for.
const (
	waitsForMoreEntries = "more objects of the inventory are looked for"
	refusedAlike        = "the other objects of that kind wait for the same permission"
)

// noteMoreEntries notes that there are entries of a component that the next reconcile looks for.
func (d *deletion) noteMoreEntries(component string) {
	d.moreEntries = true
	d.waitOnce(component, waitsForMoreEntries)
}

// waitOnce is wait with a message that may be noted already.
func (d *deletion) waitOnce(component, message string) {
	if !slices.Contains(d.waits[component], message) {
		d.wait(component, message)
	}
}

func (d *deletion) wait(component, message string) {
	d.waits[component] = append(d.waits[component], message)
}

// message says what is still to be deleted.
func (d *deletion) message() string {
	var out []string
	for _, g := range d.inventory {
		out = append(out, d.waits[g.Component]...)
	}
	return status.List(out)
}

// finalizers names the finalizers that hold an object. That of foreground deletion is the API
// server's own, and disappears by itself.
func finalizers(names []string) string {
	held := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == metav1.FinalizerDeleteDependents })
	if len(held) == 0 {
		return ""
	}
	return ", held by the finalizer " + strings.Join(held, ", ")
}
