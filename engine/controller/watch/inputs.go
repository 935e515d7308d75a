package watch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/history"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Inputs watches what the resources of a package read and do not own: of each input only the objects
// that it names or selects, and only as long as a resource refers to it.
type Inputs struct {
	// open returns a cache of one input.
	open func(inputKey) (Cache, error)
	// enqueue enqueues resources because an object has changed, or at once for the zero value.
	enqueue func(InputEvent, ...types.NamespacedName)

	mu sync.Mutex
	// ctx is that of the manager; watches end with it.
	ctx     context.Context //nolint:containedctx // Start gets it, and watches begin later
	watched map[inputKey]*inputWatch
	refers  map[types.NamespacedName]references
}

// references are the inputs to which a resource refers.
type references struct {
	// now are all of them, and decided those that its last rollout which has not failed has referred to.
	now, decided map[inputKey]bool
}

// An InputEvent is a change of an object that resources read.
type InputEvent struct {
	Of     cluster.Ref
	Action history.Action
	// Before and After are what the object was and is, if that is known.
	Before, After *unstructured.Unstructured
}

// NewInputs returns the watches of the inputs of one package, which the caller adds to the manager.
// They enqueue resources because of an object that has changed, or, for the zero value, because they
// can read a kind now.
func NewInputs(mgr Connection, enqueue func(InputEvent, ...types.NamespacedName)) *Inputs {
	return newInputs(enqueue, func(key inputKey) (Cache, error) {
		options := cache.Options{DefaultTransform: stripFieldSets} // no package reads them
		if key.name != "" {
			options.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.name", key.name)
		} else {
			selector, err := labels.Parse(key.selector)
			if err != nil {
				return Cache{}, err
			}
			options.DefaultLabelSelector = selector
		}
		return NewCache(mgr, key.namespace, options)
	})
}

func newInputs(enqueue func(InputEvent, ...types.NamespacedName), open func(inputKey) (Cache, error)) *Inputs {
	return &Inputs{open: open, enqueue: enqueue, watched: map[inputKey]*inputWatch{}, refers: map[types.NamespacedName]references{}}
}

// An inputKey identifies an input, whichever resource refers to it.
type inputKey struct {
	kind      schema.GroupVersionKind
	namespace string
	name      string
	selector  string
}

func keyOf(in cluster.Selection) inputKey {
	return inputKey{kind: in.Kind, namespace: in.Namespace, name: in.Name, selector: labels.SelectorFromSet(in.Labels).String()}
}

// An inputWatch is the running watch of an input.
type inputWatch struct {
	cache   Cache
	pending *pendingWatch
	stop    context.CancelFunc
}

// Start implements manager.Runnable. The watches stop when the manager stops.
func (i *Inputs) Start(ctx context.Context) error {
	i.mu.Lock()
	i.ctx = ctx
	i.mu.Unlock()
	<-ctx.Done()
	return nil
}

// List returns the objects of an input, to which an owner refers from now on.
func (i *Inputs) List(ctx context.Context, owner types.NamespacedName, in cluster.Selection) ([]*unstructured.Unstructured, error) {
	w, err := i.watch(owner, keyOf(in))
	if err != nil {
		return nil, err
	}
	if err := w.pending.await(ctx); err != nil {
		return nil, err
	}
	// A cache refuses reads until it has started as a whole, although its one kind has synced.
	w.cache.WaitForCacheSync(ctx)
	// The cache has nothing but the input.
	return cluster.List(ctx, w.cache, cluster.Selection{Kind: in.Kind, Namespace: in.Namespace}, client.UnsafeDisableDeepCopy)
}

// watch returns the watch of an input, which it starts if no resource referred to the input before.
func (i *Inputs) watch(owner types.NamespacedName, key inputKey) (*inputWatch, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refers[owner].now == nil {
		i.refers[owner] = references{now: map[inputKey]bool{}}
	}
	i.refers[owner].now[key] = true
	if w := i.watched[key]; w != nil {
		return w, nil
	}
	if i.ctx == nil {
		return nil, errors.New("the manager has not started yet")
	}
	c, err := i.open(key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(i.ctx)
	go func() { _ = c.Start(ctx) }() // it ends with its context, and errors only then
	pending, err := startWatch(ctx, c, key.kind)
	if err != nil {
		cancel()
		return nil, err
	}
	if _, err := pending.informer.AddEventHandler(i.handler(key)); err != nil {
		cancel()
		return nil, err
	}
	go pending.enqueueWaiters(ctx, func(req ctrl.Request) { i.enqueue(InputEvent{}, req.NamespacedName) })
	i.watched[key] = &inputWatch{cache: c, pending: pending, stop: cancel}
	return i.watched[key], nil
}

// handler returns the handler of events of an input. It leaves out the objects of the first list, as
// the reconcile that started the watch reads them.
func (i *Inputs) handler(key inputKey) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				i.changed(key, history.Created, nil, object)
			}
		},
		UpdateFunc: func(before, after any) {
			a, aok := before.(*unstructured.Unstructured)
			b, bok := after.(*unstructured.Unstructured)
			if !aok || !bok || a.GetResourceVersion() != b.GetResourceVersion() {
				i.changed(key, history.Changed, a, after)
			}
		},
		DeleteFunc: func(object any) { i.changed(key, history.Deleted, nil, object) },
	}
}

// changed enqueues the resources that refer to an input.
func (i *Inputs) changed(key inputKey, action history.Action, before *unstructured.Unstructured, object any) {
	e := InputEvent{Of: cluster.Ref{GroupVersionKind: key.kind, Namespace: key.namespace, Name: key.name}, Action: action}
	if u, ok := object.(*unstructured.Unstructured); ok { // it is a tombstone if the watch has missed a deletion
		e.Of = cluster.RefOf(u)
		if action != history.Deleted {
			e.Before, e.After = before, u
		}
	}
	i.mu.Lock()
	var owners []types.NamespacedName
	for owner, to := range i.refers {
		if to.now[key] {
			owners = append(owners, owner)
		}
	}
	i.mu.Unlock()
	slices.SortFunc(owners, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	i.enqueue(e, owners...)
}

// Refer ends the references of an owner to all but some inputs, as reconcile.Reconciler asks for after
// a rollout. One that has failed does not end those of the last one that has not: what they say may be
// what the objects on the cluster follow from.
func (i *Inputs) Refer(owner types.NamespacedName, to []program.Input, failed bool) {
	keep := map[inputKey]bool{}
	for _, in := range to {
		keep[keyOf(rollout.SelectionOf(in))] = true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	refers := references{now: keep, decided: maps.Clone(keep)} // a rollout adds to the first
	if failed {
		refers.decided = i.refers[owner].decided
		maps.Copy(keep, refers.decided)
	}
	if len(keep) == 0 {
		delete(i.refers, owner)
	} else {
		i.refers[owner] = refers
	}
	i.stopUnused()
}

// stopUnused stops the watches of inputs that no resource refers to.
func (i *Inputs) stopUnused() {
	used := map[inputKey]bool{}
	for _, to := range i.refers {
		for key := range to.now {
			used[key] = true
		}
	}
	for key, w := range i.watched {
		if !used[key] {
			w.stop()
			delete(i.watched, key)
		}
	}
}
