package watch

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// An OwnerKind is the kind of the custom resources that objects belong to.
type OwnerKind struct {
	schema.GroupKind

	// Reach returns where their objects may be; nil is unknown, as for a kind without its package.
	Reach func() program.Reach
	// UID returns the UID of one of them, or "" if it is unknown; nil knows none.
	UID func(types.NamespacedName) types.UID
	// Serves reports whether the resources of a namespace are served; nil serves all.
	Serves func(string) bool
	// Limit returns a handler that limits how often events enqueue resources.
	Limit func(handler.EventHandler) handler.EventHandler
}

// objectWatches starts the watch of a kind when an object of it is first read from a cache, and maps
// its objects to the custom resources that they belong to.
type objectWatches struct {
	owner      OwnerKind
	source     Cache
	controller controller.Controller
	// namespace is the one that the cache is restricted to, or "".
	namespace string

	mu      sync.Mutex
	pending map[schema.GroupVersionKind]*pendingWatch
}

func newObjectWatches(owner OwnerKind, in Cache, c controller.Controller) *objectWatches {
	return &objectWatches{owner: owner, source: in, controller: c, pending: map[schema.GroupVersionKind]*pendingWatch{}}
}

// ensure starts the watch of a kind, once, and waits until it has synced.
func (w *objectWatches) ensure(ctx context.Context, kind schema.GroupVersionKind) error {
	p, err := w.start(ctx, kind)
	if err != nil {
		return err
	}
	return p.await(ctx)
}

func (w *objectWatches) start(ctx context.Context, kind schema.GroupVersionKind) (*pendingWatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pending[kind]; p != nil {
		return p, nil
	}
	p, err := startWatch(ctx, w.source, kind)
	if err != nil {
		return nil, err
	}
	if err := w.controller.Watch(p.source(w.owner.Limit(w.handler()))); err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	w.pending[kind] = p
	return p, nil
}

// handler returns the handler of events of objects, which enqueues their owners. A deletion enqueues
// the resource that the object names whatever its UID, as the object may have blocked another object
// of its name.
func (w *objectWatches) handler() handler.EventHandler {
	toOwner, toNamed := handler.EnqueueRequestsFromMapFunc(w.requestsByUID), handler.EnqueueRequestsFromMapFunc(w.requests)
	return handler.Funcs{CreateFunc: toOwner.Create, UpdateFunc: toOwner.Update, DeleteFunc: toNamed.Delete, GenericFunc: toOwner.Generic}
}

// requestsByUID is requests without an object whose marks have the UID of another resource. Objects of
// early versions have no UID in their marks.
func (w *objectWatches) requestsByUID(ctx context.Context, o client.Object) []ctrl.Request {
	out := w.requests(ctx, o)
	says := types.UID(o.GetAnnotations()[ownership.OwnerUIDAnnotation])
	if len(out) == 0 || says == "" || w.owner.UID == nil {
		return out
	}
	refers := func(uid types.UID) bool {
		return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
	}
	if is := w.owner.UID(out[0].NamespacedName); is != "" && is != says && !refers(is) {
		return nil
	}
	return out
}

// requests returns the custom resource of this package that an object belongs to by its owner
// annotation. Anybody can write an annotation, so it returns none if the object is where the resource
// may not own one.
func (w *objectWatches) requests(_ context.Context, o client.Object) []ctrl.Request {
	kind, key, ok := ownership.ParseOwner(o.GetAnnotations()[ownership.OwnerAnnotation])
	if !ok || kind != w.owner.GroupKind || w.owner.Serves != nil && !w.owner.Serves(key.Namespace) {
		return nil
	}
	objectKind := o.GetObjectKind().GroupVersionKind().GroupKind()
	if w.owner.Reach != nil && w.owner.Reach().MayOwn(key.Namespace, objectKind, o.GetNamespace()) != nil {
		return nil
	}
	return []ctrl.Request{{NamespacedName: key}}
}
