package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// watches starts the watch of a kind when a package first renders it, and maps
// its objects to the custom resources they belong to.
type watches struct {
	owner      ownerKind
	source     objectCache
	controller controller.Controller

	mu      sync.Mutex
	pending map[schema.GroupVersionKind]*pendingWatch
}

// An ownerKind is the kind of the custom resources that objects belong to.
type ownerKind struct {
	schema.GroupKind

	// reach is where their objects may be; nil is not known, as of a kind without its package.
	reach func() program.Reach
	// uid returns the UID of one of them, "" where it is not known; nil knows none.
	uid    func(types.NamespacedName) types.UID
	limits *eventRateLimits
}

func newWatches(owner ownerKind, in objectCache, c controller.Controller) *watches {
	return &watches{owner: owner, source: in, controller: c, pending: map[schema.GroupVersionKind]*pendingWatch{}}
}

// ensure starts the watch of a kind, once, and waits until it has synced.
func (w *watches) ensure(ctx context.Context, kind schema.GroupVersionKind) error {
	o, err := w.open(ctx, kind)
	if err != nil {
		return err
	}
	return o.await(ctx)
}

func (w *watches) open(ctx context.Context, kind schema.GroupVersionKind) (*pendingWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.pending[kind]; o != nil {
		return o, nil
	}
	informer, err := w.source.cache.GetInformer(ctx, object(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	o := newPendingWatch(kind, informer.HasSyncedChecker().Done(), w.source.errors)
	if err := w.controller.Watch(o.source(informer, w.owner.limits.limited(w.handler()))); err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	w.pending[kind] = o
	return o, nil
}

// handler returns what reconciles the custom resource that an object belongs to. What is
// gone may have been in the way of another resource of its name, and reconciles that.
func (w *watches) handler() handler.EventHandler {
	toOwner, toNamed := handler.EnqueueRequestsFromMapFunc(w.proven), handler.EnqueueRequestsFromMapFunc(w.requests)
	return handler.Funcs{CreateFunc: toOwner.Create, UpdateFunc: toOwner.Update, DeleteFunc: toNamed.Delete, GenericFunc: toOwner.Generic}
}

// proven returns what requests does, but nothing for an object whose marks have the UID of
// another resource. One without a UID is from before there were any.
func (w *watches) proven(ctx context.Context, o client.Object) []ctrl.Request {
	out := w.requests(ctx, o)
	says := types.UID(o.GetAnnotations()[ownership.UIDMark])
	if len(out) == 0 || says == "" || w.owner.uid == nil {
		return out
	}
	refers := func(uid types.UID) bool {
		return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
	}
	if is := w.owner.uid(out[0].NamespacedName); is != "" && is != says && !refers(is) {
		return nil
	}
	return out
}

// cachedUID returns what looks the UID of a resource up, once a cache has all of the kind.
func cachedUID(from cache.Cache, kind schema.GroupVersionKind) func(types.NamespacedName) types.UID {
	return func(key types.NamespacedName) types.UID {
		ctx := context.Background() // nothing is waited for
		informer, err := from.GetInformer(ctx, object(kind), cache.BlockUntilSynced(false))
		if err != nil || !informer.HasSynced() {
			return ""
		}
		u := object(kind)
		if err := from.Get(ctx, key, u, client.UnsafeDisableDeepCopy); err != nil {
			return ""
		}
		return u.GetUID()
	}
}

// requests returns the custom resource of this package that an object belongs to. Marks can
// be written by anybody: an object where the resource can have none is not its own.
func (w *watches) requests(_ context.Context, o client.Object) []ctrl.Request {
	kind, key, ok := ownership.ParseOwner(o.GetAnnotations()[ownership.OwnerAnnotation])
	if !ok || kind != w.owner.GroupKind {
		return nil
	}
	objectKind := o.GetObjectKind().GroupVersionKind().GroupKind()
	if w.owner.reach != nil && w.owner.reach().MayOwn(key.Namespace, objectKind, o.GetNamespace()) != nil {
		return nil
	}
	return []ctrl.Request{{NamespacedName: key}}
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

// specOrMetadataChanged lets through the changes of a custom resource that a rollout can
// depend on, and the resync, in which nothing has changed.
var specOrMetadataChanged = predicate.TypedFuncs[client.Object]{
	UpdateFunc: func(e event.TypedUpdateEvent[client.Object]) bool {
		before, isBefore := e.ObjectOld.(*unstructured.Unstructured)
		after, isAfter := e.ObjectNew.(*unstructured.Unstructured)
		return resynced(e) || !isBefore || !isAfter || reconcile.SpecOrMetadataChanged(before, after)
	},
}

// resynced reports whether an update tells again what is known.
func resynced(e event.TypedUpdateEvent[client.Object]) bool {
	return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
}
