package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/plan"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watches starts the watch of a kind when a package first renders it, and maps
// its objects to the custom resources they belong to.
type watches struct {
	owner      schema.GroupKind
	space      space
	controller controller.Controller
	own        *echoes

	mu       sync.Mutex
	openings map[schema.GroupVersionKind]*opening
}

func newWatches(owner schema.GroupKind, in space, own *echoes, c controller.Controller) *watches {
	return &watches{owner: owner, space: in, controller: c, own: own, openings: map[schema.GroupVersionKind]*opening{}}
}

// ensure starts the watch of a kind, once, and waits for it as opening does.
func (w *watches) ensure(ctx context.Context, kind schema.GroupVersionKind) error {
	o, err := w.open(ctx, kind)
	if err != nil {
		return err
	}
	return o.await(ctx)
}

func (w *watches) open(ctx context.Context, kind schema.GroupVersionKind) (*opening, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.openings[kind]; o != nil {
		return o, nil
	}
	informer, err := w.space.cache.GetInformer(ctx, object(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	o := newOpening(kind, informer.HasSyncedChecker().Done(), w.space.troubles)
	toOwner := w.own.without(handler.EnqueueRequestsFromMapFunc(w.requests))
	if err := w.controller.Watch(o.source(informer, toOwner)); err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	w.openings[kind] = o
	return o, nil
}

// requests returns the custom resource of this package that an object belongs to.
func (w *watches) requests(_ context.Context, o client.Object) []reconcile.Request {
	kind, key, ok := plan.ParseOwner(o.GetAnnotations()[plan.OwnerMark])
	if !ok || kind != w.owner {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

func object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

func newList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return l
}

// meaningful lets through the changes of a custom resource that a rollout can
// depend on, and not those of its status, which are the engine's own but for one. It
// lets the resync through, in which nothing has changed.
var meaningful = predicate.TypedFuncs[client.Object]{
	UpdateFunc: func(e event.TypedUpdateEvent[client.Object]) bool {
		return resynced(e) ||
			e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			lostInventory(e.ObjectOld, e.ObjectNew) ||
			!sameMap(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			!sameMap(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	},
}

// lostInventory reports whether somebody took the inventory away, as a restored backup
// does, or a person whom the engine has asked to. The engine itself never does.
func lostInventory(before, after client.Object) bool {
	return hasInventory(before) && !hasInventory(after)
}

func hasInventory(o client.Object) bool {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	_, found, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "inventory")
	return found
}

// resynced reports whether an update tells again what is known.
func resynced(e event.TypedUpdateEvent[client.Object]) bool {
	return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}
