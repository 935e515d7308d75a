package controller

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// A watcher watches the resources of a kind whose package is not served. The cache is its
// own: it goes with it, and one that may not be filled holds nobody else up.
type watcher struct {
	strays     *strays
	kind       strayKind
	resources  cache.Cache
	reader     client.Client
	life       *reconcile.Reconciler
	controller controller.Controller
}

// newWatcher returns what takes steps with the resources of a kind, and watches nothing yet.
func (s *strays) newWatcher(k strayKind, name string, kindStep func(*reconcile.Reconciler) step) (*watcher, error) {
	m := s.manager
	w := &watcher{strays: s, kind: k}
	options := cacheOptions(m.manager)
	options.DefaultNamespaces = only(m.options.CustomResourceNamespace)
	options.DefaultTransform = guarded(m.options.Log, stripResource)
	var err error
	if w.resources, err = cache.New(m.manager.GetConfig(), options); err != nil {
		return nil, err
	}
	if w.reader, err = cachedClient(m.manager, w.resources); err != nil {
		return nil, err
	}
	w.life = &reconcile.Reconciler{
		Kind: k.GroupVersionKind, Store: m.store(k.GroupVersionKind, w.reader), Recorder: m.recorder(), Now: time.Now,
		StrayReach: k.reach,
		Allow:      m.options.Allow,
	}
	w.controller, err = m.newController(name+"."+strings.ToLower(k.GroupKind().String()), k.Kind, k.pkg, retried(kindStep(w.life)), nil)
	if err != nil {
		return nil, err
	}
	w.life.Cluster = newSpread(m.children, ownerKind{GroupKind: k.GroupKind(), wakes: newWakes(m.options.Log)}, w.controller)
	return w, nil
}

// watch makes the controller take a step with each resource of an event that the
// predicates let through.
func (w *watcher) watch(predicates ...predicate.TypedPredicate[client.Object]) error {
	enqueue := &handler.TypedEnqueueRequestForObject[client.Object]{}
	return w.controller.Watch(source.Kind[client.Object](w.resources, object(w.kind.GroupVersionKind), enqueue, predicates...))
}

// run watches until the context ends.
func (w *watcher) run(ctx context.Context) {
	var reading sync.WaitGroup
	reading.Go(func() { _ = w.resources.Start(ctx) }) // it ends with its context
	if err := w.controller.Start(ctx); err != nil && ctx.Err() == nil {
		w.strays.log.Error(err, "resources without their package are not watched any more", "package", w.kind.pkg, "kind", w.kind.GroupKind().String())
	}
	reading.Wait()
}

// control returns what watches a kind and tears its strays down, until its context ends.
func (s *strays) control(k strayKind) (func(context.Context), error) {
	w, err := s.newWatcher(k, "stray", func(l *reconcile.Reconciler) step { return l.StepStray })
	if err != nil {
		return nil, err
	}
	stray := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil && waits(o) })
	return w.run, w.watch(meaningful, stray)
}

// controlBroken returns what watches a kind whose package is broken, until its context ends,
// and what makes it look at all of its resources once more.
func (s *strays) controlBroken(k strayKind) (run func(context.Context), wake waker, err error) {
	elsewhere := func() {
		s.log.Info("another process serves the kind of a package that is broken here, and what is broken is not said in its resources", "package", k.pkg, "kind", k.GroupKind().String())
	}
	w, err := s.newWatcher(k, "broken", func(l *reconcile.Reconciler) step {
		u := newUnserved(l, func() string { return s.faultOf(k.pkg) }, elsewhere)
		return s.stepOf(l, u)
	})
	if err != nil {
		return nil, nil, err
	}
	w.life.Store = pacedStore{w.life.Store, s.pace}
	woken := make(chan event.TypedGenericEvent[client.Object])
	enqueue := &handler.TypedEnqueueRequestForObject[client.Object]{}
	if err := w.controller.Watch(source.Channel(woken, enqueue)); err != nil {
		return nil, nil, err
	}
	wake = func(ctx context.Context, done <-chan struct{}) { w.wakeAll(ctx, done, woken) }
	return w.run, wake, w.watch(predicate.Or[client.Object](meaningful, answered))
}

// wakeAll makes the controller take a step with each resource.
func (w *watcher) wakeAll(ctx context.Context, done <-chan struct{}, woken chan<- event.TypedGenericEvent[client.Object]) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout) // a kind that cannot be read holds no other up
	defer cancel()
	list := newList(w.kind.GroupVersionKind)
	if w.reader.List(ctx, list) != nil {
		return // its watch will begin, and tell of each of them
	}
	for i := range list.Items {
		select {
		case woken <- event.TypedGenericEvent[client.Object]{Object: &list.Items[i]}:
		case <-done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// stepOf returns the step of a resource whose package is broken. One that is being deleted
// is a stray.
func (s *strays) stepOf(l *reconcile.Reconciler, u *unserved) step {
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		cr, err := l.Store.Get(ctx, key)
		switch {
		case err != nil:
			return 0, err
		case cr == nil || cr.GetDeletionTimestamp() == nil:
			return u.step(ctx, key)
		case s.tearDown():
			return l.StepStray(ctx, key)
		}
		return 0, nil
	}
}

// pacedStore is a store whose statuses are written at a pace.
type pacedStore struct {
	reconcile.Store

	pace flowcontrol.RateLimiter
}

// ApplyStatus implements reconcile.Store.
func (s pacedStore) ApplyStatus(ctx context.Context, resource *unstructured.Unstructured) error {
	if err := s.pace.Wait(ctx); err != nil {
		return err
	}
	return s.Store.ApplyStatus(ctx, resource)
}

// waits reports whether a resource waits for the engine when it is deleted.
func waits(o metav1.Object) bool { return slices.Contains(o.GetFinalizers(), reconcile.Finalizer) }

// retried returns a step that is taken again when the resource was changed since it was
// read: whoever did so may know better.
func retried(s step) step {
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		again, err := s(ctx, key)
		if apierrors.IsConflict(err) {
			return firstRetry, nil
		}
		return again, err
	}
}
