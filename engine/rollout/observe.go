package rollout

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// observed is what the cluster has of a resource.
type observed struct {
	*Engine
	in Input
	// inventory is what is stored by now.
	inventory ownership.Inventory
	// stored are the entries of the inventory that the rollout started from.
	stored map[cluster.Ref]ownership.Entry
	// unreadable are the objects of the inventory that cannot be read, of kinds that the package does not render.
	unreadable map[cluster.Ref]bool
	live       live
	// gone are the objects that have finished and do not exist any more.
	gone map[cluster.Ref]gone
	// found are the inputs by name, and unread those of kinds that are not served, with why.
	found  map[string]program.FoundInput
	unread map[string]string
	// read is what was read of inputs by selection, and written are the objects that this rollout has
	// written as the API server has answered.
	read    map[string]program.FoundInput
	written map[cluster.Ref]*unstructured.Unstructured
	// use is which inputs the rollout refers to.
	use inputUse
	// hidden are the excluded components whose live objects the package does not see.
	hidden map[string]string
}

// live holds observed objects by component and object name.
type live map[string]map[string]*unstructured.Unstructured

// all yields the objects, in no order.
func (l live) all() iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		for _, objects := range l {
			for _, u := range objects {
				if u != nil && !yield(u) {
					return
				}
			}
		}
	}
}

// place is an object's component and name in a package, and its identity on the cluster.
type place struct {
	component, object string
	ref               cluster.Ref
}

// observe reads the live objects that the inventory names. A kind that cannot be read ends the rollout, unless the package
// cannot render it: it is then of an earlier version of the package, whose rights may be gone, or a user who may write the status has
// put it there. No component is rendered otherwise because such an object is missing. Only its deletion needs it.
func (obs *observed) observe(ctx context.Context) error {
	var places []place
	for component, e := range obs.inventory.Entries() {
		ref := e.Ref(obs.in.Owner.Namespace)
		places = append(places, place{component, e.Object, ref})
		if _, twice := obs.stored[ref.Identity()]; !twice {
			obs.stored[ref.Identity()] = e
		}
	}
	reads := slices.DeleteFunc(obs.readPlaces(ctx, places), func(r objectRead) bool {
		if !isUnreadable(r.err) || obs.mayRender(r.ref.GroupKind()) {
			return false
		}
		obs.unreadable[r.ref.Identity()] = true
		return true
	})
	if _, err := obs.keepOwned(reads); err != nil {
		return err
	}
	obs.findFinished()
	return nil
}

// mayRender reports whether the package may render objects of a kind.
func (obs *observed) mayRender(kind schema.GroupKind) bool {
	return obs.MayRender == nil || obs.MayRender(kind)
}

func isUnreadable(err error) bool {
	_, is := errors.AsType[*cluster.KindUnreadableError](err)
	return is
}

// parallelReads is how many objects are read at once. Reads come from memory; only
// the first of a kind has to wait for a watch, and those wait side by side.
const parallelReads = 16

// look reads objects from the cache and keeps those that the resource owns. It reports
// whether that changes what the package sees.
func (obs *observed) look(ctx context.Context, places []place) (bool, error) {
	return obs.keepOwned(obs.readPlaces(ctx, places))
}

// An objectRead is what the cache has at a place.
type objectRead struct {
	place

	found *unstructured.Unstructured
	err   error
}

// readPlaces reads objects from the cache.
func (obs *observed) readPlaces(ctx context.Context, places []place) []objectRead {
	out := make([]objectRead, len(places))
	group := errgroup.Group{}
	group.SetLimit(parallelReads)
	for i, p := range places {
		out[i].place = p
		group.Go(func() error {
			out[i].err = guarded(func() error {
				u, err := obs.Cluster.GetCached(ctx, p.ref)
				if cluster.IsKindNotServed(err) {
					return nil // such a kind has no objects
				}
				out[i].found = u
				return err
			})
			return nil
		})
	}
	_ = group.Wait() // its error is the first in time, which would make the result depend on timing
	return out
}

// keepOwned keeps the objects that the resource owns. It reports whether that changes what the package sees.
func (obs *observed) keepOwned(reads []objectRead) (bool, error) {
	if err := readError(reads); err != nil {
		return false, err
	}
	changed := false
	for _, r := range reads {
		known := obs.live[r.component][r.object]
		obs.see(r.component, r.object, r.found)
		changed = changed || obs.live[r.component][r.object] != known
	}
	return changed, nil
}

// readError returns one error of failed reads: that of each kind that cannot be read, in
// the order of the objects, or else the first error.
func readError(reads []objectRead) error {
	var kinds []error
	var first error
	seen := map[schema.GroupVersionKind]bool{}
	for _, r := range reads {
		first = cmp.Or(first, r.err)
		if e, ok := errors.AsType[*cluster.KindUnreadableError](r.err); ok && !seen[e.Kind] {
			seen[e.Kind] = true
			kinds = append(kinds, e)
		}
	}
	if len(kinds) > 0 {
		return errors.Join(kinds...)
	}
	return first
}

// see keeps a live object if the resource owns it: a package must not see the objects of
// others under its names.
func (obs *observed) see(component, object string, u *unstructured.Unstructured) {
	situation, _ := ownership.Classify(u, obs.in.Owner)
	visible := situation == ownership.Owned
	if situation == ownership.Terminating {
		_, finished := obs.gone[cluster.RefOf(u).Identity()]
		visible = !finished
	}
	if !visible {
		delete(obs.live[component], object)
		return
	}
	obs.in.Redactor.Add(u.Object)
	if obs.live[component] == nil {
		obs.live[component] = map[string]*unstructured.Unstructured{}
	}
	obs.live[component][object] = u
}

// session is what the package sees now.
func (obs *observed) session() program.Session {
	return program.Session{CR: obs.in.CR, Live: obs.seen(), Inputs: obs.found, Config: obs.in.Config}
}

// refOf returns the identity of an object.
func (obs *observed) refOf(ctx context.Context, o program.Object) cluster.Ref {
	return ownership.RefOf(o, obs.in.Owner.Namespace, obs.scopeOf(ctx, o))
}

// scopeOf returns the scope of an object's kind. A kind that is not served counts as
// namespaced: nothing of it is written before it is served.
func (obs *observed) scopeOf(ctx context.Context, o program.Object) cluster.Scope {
	scope, err := obs.Cluster.Scope(ctx, o.Identity.GroupVersionKind)
	if err != nil {
		return cluster.Namespaced
	}
	return scope
}

// seen returns what the package sees: the live objects and the finished ones that are gone,
// without those of hidden components.
func (obs *observed) seen() map[string]map[string]map[string]any {
	out := make(map[string]map[string]map[string]any, len(obs.live))
	see := func(component, object string, u *unstructured.Unstructured) {
		if _, hidden := obs.hidden[component]; hidden {
			return
		}
		if out[component] == nil {
			out[component] = map[string]map[string]any{}
		}
		out[component][object] = u.Object
	}
	for _, g := range obs.gone {
		see(g.component, g.object, g.seen)
	}
	for component, objects := range obs.live {
		for name, u := range objects {
			see(component, name, u)
		}
	}
	return out
}
