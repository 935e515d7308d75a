package controller

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// inputs watches what the resources of a package read and do not own: of each input
// just the objects that it names or selects, as long as a resource refers to it.
type inputs struct {
	// open returns a cache for one input, which tells its troubles.
	open func(inputKey, *watchErrors) (cache.Cache, error)
	// enqueue reconciles resources because an object has changed, or for the zero value at once.
	enqueue func(cluster.Ref, ...types.NamespacedName)

	mu sync.Mutex
	// ctx is that of the manager; watches end with it.
	ctx     context.Context //nolint:containedctx // it is the life that Start was given, and watches begin later
	watched map[inputKey]*inputWatch
	refers  map[types.NamespacedName]map[inputKey]bool
}

// inputKey tells one input from another, whoever refers to it.
type inputKey struct {
	kind      schema.GroupVersionKind
	namespace string
	name      string
	selector  string
}

func keyOf(in cluster.Selection) inputKey {
	return inputKey{kind: in.Kind, namespace: in.Namespace, name: in.Name, selector: labels.SelectorFromSet(in.Labels).String()}
}

// inputWatch is a running watch.
type inputWatch struct {
	cache   cache.Cache
	pending *pendingWatch
	stop    context.CancelFunc
}

// Start implements manager.Runnable. The watches stop when the manager stops.
func (i *inputs) Start(ctx context.Context) error {
	i.mu.Lock()
	i.ctx = ctx
	i.mu.Unlock()
	<-ctx.Done()
	return nil
}

// list returns the objects of an input that an owner refers to from now on.
func (i *inputs) list(ctx context.Context, owner types.NamespacedName, in cluster.Selection) ([]*unstructured.Unstructured, error) {
	w, err := i.watch(owner, keyOf(in))
	if err != nil {
		return nil, err
	}
	if err := w.pending.await(ctx); err != nil {
		return nil, err
	}
	// A cache that has just begun refuses to be read until it has started as a whole.
	w.cache.WaitForCacheSync(ctx)
	// The cache has nothing but the input.
	return cluster.List(ctx, w.cache, cluster.Selection{Kind: in.Kind, Namespace: in.Namespace})
}

// watch returns the watch of an input, which it starts if nobody referred to it.
func (i *inputs) watch(owner types.NamespacedName, key inputKey) (*inputWatch, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refers[owner] == nil {
		i.refers[owner] = map[inputKey]bool{}
	}
	i.refers[owner][key] = true
	if w := i.watched[key]; w != nil {
		return w, nil
	}
	if i.ctx == nil {
		return nil, fmt.Errorf("the manager has not started yet")
	}
	trouble := &watchErrors{}
	c, err := i.open(key, trouble)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(i.ctx)
	w := &inputWatch{cache: c, stop: cancel}
	go func() { _ = c.Start(ctx) }() // it ends with its context, and errors only then
	informer, err := c.GetInformer(ctx, object(key.kind), cache.BlockUntilSynced(false))
	if err != nil {
		cancel()
		return nil, err
	}
	if _, err := informer.AddEventHandler(i.handler(key)); err != nil {
		cancel()
		return nil, err
	}
	w.pending = newPendingWatch(key.kind, informer.HasSyncedChecker().Done(), trouble)
	go w.pending.enqueueWaiters(ctx, func(req ctrl.Request) { i.enqueue(cluster.Ref{}, req.NamespacedName) })
	i.watched[key] = w
	return w, nil
}

// handler reconciles whoever refers to an input that changed. What was there when
// the watch began was read by whoever began it.
func (i *inputs) handler(key inputKey) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				i.changed(key, object)
			}
		},
		UpdateFunc: func(before, after any) {
			a, aok := before.(*unstructured.Unstructured)
			b, bok := after.(*unstructured.Unstructured)
			if !aok || !bok || a.GetResourceVersion() != b.GetResourceVersion() {
				i.changed(key, after)
			}
		},
		DeleteFunc: func(object any) { i.changed(key, object) },
	}
}

func (i *inputs) changed(key inputKey, object any) {
	of := cluster.Ref{GroupVersionKind: key.kind, Namespace: key.namespace, Name: key.name}
	if u, ok := object.(*unstructured.Unstructured); ok { // and not what a watch has missed
		of = sourceOf(u)
	}
	i.mu.Lock()
	var owners []types.NamespacedName
	for owner, keys := range i.refers {
		if keys[key] {
			owners = append(owners, owner)
		}
	}
	i.mu.Unlock()
	sort.Slice(owners, func(a, b int) bool { return strings.Compare(owners[a].String(), owners[b].String()) < 0 })
	i.enqueue(of, owners...)
}

// refer ends the references of an owner to all but some inputs, as rollout.Engine asks for.
func (i *inputs) refer(owner types.NamespacedName, to []program.Input) {
	keep := map[inputKey]bool{}
	for _, in := range to {
		keep[keyOf(rollout.SelectionOf(in))] = true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(keep) == 0 {
		delete(i.refers, owner)
	} else {
		i.refers[owner] = keep
	}
	i.release()
}

// release ends the watches that nobody refers to.
func (i *inputs) release() {
	used := map[inputKey]bool{}
	for _, keys := range i.refers {
		for key := range keys {
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

// inputOptions restrict a cache to one input.
func inputOptions(key inputKey) (cache.Options, error) {
	out := cache.Options{}
	if key.namespace != "" {
		out.DefaultNamespaces = map[string]cache.Config{key.namespace: {}}
	}
	if key.name != "" {
		out.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.name", key.name)
		return out, nil
	}
	selector, err := labels.Parse(key.selector)
	out.DefaultLabelSelector = selector
	return out, err
}
