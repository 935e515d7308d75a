package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

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
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// syncTimeout is how long the first read of a kind may take: a list that is not
// allowed never ends, and must not hold a worker for good.
const syncTimeout = 20 * time.Second

// watches starts the watch of a kind when a package first renders it, and maps
// its objects to the custom resources they belong to.
type watches struct {
	owner      schema.GroupKind
	cache      cache.Cache
	controller controller.Controller
	own        *echoes

	mu      sync.Mutex
	started map[schema.GroupVersionKind]bool
}

// ensure starts the watch of a kind, once, and waits until it is synced.
func (w *watches) ensure(ctx context.Context, kind schema.GroupVersionKind) error {
	if err := w.start(kind); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	informer, err := w.cache.GetInformer(ctx, object(kind))
	if err != nil {
		return fmt.Errorf("%w (may the operator list and watch it?)", err)
	}
	if !informer.HasSynced() {
		return fmt.Errorf("its cache is not synced yet")
	}
	return nil
}

func (w *watches) start(kind schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started[kind] {
		return nil
	}
	toOwner := w.own.without(handler.TypedEnqueueRequestsFromMapFunc(w.requests))
	if err := w.controller.Watch(source.Kind[client.Object](w.cache, object(kind), toOwner)); err != nil {
		return err
	}
	w.started[kind] = true
	return nil
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
// depend on, and not those of its status, which are the engine's own but for one.
var meaningful = predicate.TypedFuncs[client.Object]{
	UpdateFunc: func(e event.TypedUpdateEvent[client.Object]) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
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
