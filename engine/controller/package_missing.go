package controller

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// A PackageMissingPolicy says what happens to a deleted custom resource that has the engine's finalizer and whose
// package is missing: the package is gone, or was broken when the process started.
type PackageMissingPolicy string

// The policies for resources whose package is missing.
const (
	// TearDownWithoutPackage deletes their objects, which their inventories list.
	TearDownWithoutPackage PackageMissingPolicy = "teardown"
	// LeaveWithoutPackage leaves them to other processes.
	LeaveWithoutPackage PackageMissingPolicy = "leave"
)

// packageMissingTeardown tears down deleted resources whose package is missing. It finds their kinds by the
// label of their CustomResourceDefinitions, once: a resource that is created later has no objects
// before its package is loaded. It watches a kind only if a resource of it has the engine's
// finalizer, and stops when the package is loaded.
//
// It watches all resources of a kind whose package is broken, as each of them reports that.
type packageMissingTeardown struct {
	manager *Manager
	log     logr.Logger
	// brokenLimiter limits the reports of broken packages, most of which write a status.
	brokenLimiter flowcontrol.RateLimiter

	packagesLoaded     chan struct{}
	notePackagesLoaded func()
	// changed signals that a package broke or was repaired.
	changed chan struct{}

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // Start gets it, and packages are withdrawn later
	watched  map[schema.GroupKind]*kindWatch
	broken   map[string]*brokenPackage // by their folders
	watching sync.WaitGroup
}

// A kindWatch is a running watch of one kind.
type kindWatch struct {
	stop context.CancelFunc
	done chan struct{}
	// broken watches all resources of a broken package; nil for a watch of deletions.
	broken *watcher
}

func newPackageMissingTeardown(m *Manager) *packageMissingTeardown {
	s := &packageMissingTeardown{
		manager: m, log: m.options.Log, packagesLoaded: make(chan struct{}), watched: map[schema.GroupKind]*kindWatch{},
		changed: make(chan struct{}, 1), broken: map[string]*brokenPackage{},
		brokenLimiter: flowcontrol.NewTokenBucketRateLimiter(brokenRate, 1),
	}
	s.notePackagesLoaded = sync.OnceFunc(func() { close(s.packagesLoaded) })
	return s
}

// brokenRate is how many resources of broken packages report that in a second: a change of a package
// concerns all of them at once.
const brokenRate = 200

// Start implements manager.Runnable.
func (s *packageMissingTeardown) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	var following sync.WaitGroup
	following.Go(func() { s.followBroken(ctx) })
	select {
	case <-s.packagesLoaded:
		if s.tearsDown() {
			s.watchKindsWithFinalizers(ctx)
		}
		<-ctx.Done()
	case <-ctx.Done():
	}
	following.Wait()
	s.watching.Wait()
	return nil
}

// tearsDown reports whether deleted resources are torn down rather than left to others.
func (s *packageMissingTeardown) tearsDown() bool {
	return s.manager.options.PackageMissing != LeaveWithoutPackage
}

// searchBegun reports whether the kinds of all packages are being looked for, or have been. What is not served when it
// reports that they are not will be found.
func (s *packageMissingTeardown) searchBegun() bool { return isClosed(s.packagesLoaded) }

// watchKindsWithFinalizers watches the kinds that have a resource with the engine's finalizer.
func (s *packageMissingTeardown) watchKindsWithFinalizers(ctx context.Context) {
	var found []packageMissingKind
	s.retry(ctx, searchingKinds, func() (err error) { found, err = s.find(ctx); return err })
	var names []string
	for _, k := range found {
		if s.start(ctx, k) {
			names = append(names, k.pkg)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		s.log.Info("tearing down deleted resources whose package is not loaded here", "packages", slices.Compact(names))
	}
}

// searchingKinds is what the log says if the search for the resources of missing packages fails.
const searchingKinds = "looking for resources without their package"

// retry calls a function with backoff until it succeeds or the context ends. It logs a failure with what the function does.
func (s *packageMissingTeardown) retry(ctx context.Context, doing string, try func() error) {
	again := wait.Backoff{Duration: firstRetry, Factor: 2, Steps: 10, Cap: maxRetry}
	_ = again.DelayFunc().Until(ctx, true, false, func(context.Context) (bool, error) {
		err := try()
		if err != nil {
			s.log.Info(doing+" failed, trying again", "error", err.Error())
		}
		return err == nil, nil
	})
}

// outOfScope reports whether the package of a kind is loaded, or the kind is beyond the manager's
// namespaces.
func (s *packageMissingTeardown) outOfScope(k packageMissingKind) bool {
	return s.manager.Serves(k.GroupKind()) || !s.manager.options.Namespaces.All() && !k.namespaced
}

// find returns the kinds that have a resource with the engine's finalizer, and whose package is missing.
func (s *packageMissingTeardown) find(ctx context.Context) ([]packageMissingKind, error) {
	kinds, err := s.kinds(ctx)
	if err != nil {
		return nil, err
	}
	var out []packageMissingKind
	var refused []string
	for _, k := range kinds {
		if s.outOfScope(k) {
			continue
		}
		waiting, err := s.anyHasFinalizer(ctx, k)
		switch {
		case apierrors.IsForbidden(err):
			refused = append(refused, k.GroupKind().String())
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		case waiting:
			out = append(out, k)
		}
	}
	s.logRefused(refused)
	return out, nil
}

// kinds returns the kinds of all packages.
func (s *packageMissingTeardown) kinds(ctx context.Context) ([]packageMissingKind, error) {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(definitionKind.GroupVersion().WithKind(definitionKind.Kind + "List"))
	err := s.manager.own.caches.Direct.List(ctx, definitions, client.HasLabels{crd.PackageLabel})
	if apierrors.IsForbidden(err) {
		s.log.Info("resources without their package are not looked for: the operator may not list CustomResourceDefinitions")
		return nil, nil
	}
	if err != nil || len(definitions.Items) == 0 {
		return nil, err
	}
	resources, err := cluster.Resources(s.manager.manager.GetConfig())
	if err != nil {
		return nil, err
	}
	return kindsDefined(definitions.Items, resources), nil
}

// noteWithdrawn watches a kind whose package is not served any more, if a resource has the engine's finalizer.
func (s *packageMissingTeardown) noteWithdrawn(k packageMissingKind) {
	s.mu.Lock()
	ctx := s.ctx
	s.mu.Unlock()
	if ctx == nil || !s.tearsDown() {
		return
	}
	if err := s.watchWithdrawn(ctx, k); err != nil {
		s.watching.Go(func() {
			s.retry(ctx, watchingWithdrawn, func() error { return s.watchWithdrawn(ctx, k) })
		})
	}
}

// watchingWithdrawn is what the log says if it cannot be read whether a withdrawn package leaves resources behind.
const watchingWithdrawn = "looking at the resources of a package that is not served any more"

// watchWithdrawn watches a kind if a resource has the engine's finalizer, and this process does not serve it by now. It errors if that
// cannot be read: the resources would hang in their deletion until the next start.
func (s *packageMissingTeardown) watchWithdrawn(ctx context.Context, k packageMissingKind) error {
	if s.outOfScope(k) {
		return nil
	}
	waiting, err := s.anyHasFinalizer(ctx, k)
	switch {
	case apierrors.IsForbidden(err):
		s.log.Info("resources of a package that is not served any more are not looked at: the operator may not list them", "package", k.pkg, "kind", k.GroupKind().String())
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case waiting:
		s.start(ctx, k)
	}
	return nil
}

// page is how many resources one request lists.
const page = 500

// anyHasFinalizer reports whether a kind has a resource with the engine's finalizer, also one that is not selected: it may be later.
func (s *packageMissingTeardown) anyHasFinalizer(ctx context.Context, k packageMissingKind) (bool, error) {
	by, done, err := s.manager.identityOf(s.manager.accountWithout(k))
	if err != nil {
		return false, err
	}
	defer done()
	var refused error
	for _, namespace := range s.manager.options.Namespaces.Lists() {
		waiting, err := anyHasFinalizerIn(ctx, by.caches.Direct, k, namespace)
		switch {
		case apierrors.IsForbidden(err):
			refused = err // what it may list elsewhere is looked at all the same
		case waiting || err != nil:
			return waiting, err
		}
	}
	return false, refused
}

// anyHasFinalizerIn is anyHasFinalizer in a namespace, or in all for "".
func anyHasFinalizerIn(ctx context.Context, from client.Reader, k packageMissingKind, namespace string) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	for {
		next := list.Continue
		list = &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		err := from.List(ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(next))
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if hasFinalizer(&list.Items[i]) {
				return true, nil
			}
		}
		if list.Continue == "" {
			return false, nil
		}
	}
}

// start watches the deletions of a kind, unless it is watched or its package is loaded by
// now, and reports whether it has started.
func (s *packageMissingTeardown) start(ctx context.Context, k packageMissingKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[k.GroupKind()] != nil || s.manager.Serves(k.GroupKind()) {
		return false
	}
	w, err := s.newTeardownWatcher(k)
	if err != nil {
		w.end()
		s.log.Error(err, "resources without their package cannot be watched", "package", k.pkg, "kind", k.GroupKind().String())
		return false
	}
	s.run(ctx, k.GroupKind(), w.run)
	return true
}

// startBroken watches all resources of a kind whose package is broken.
func (s *packageMissingTeardown) startBroken(ctx context.Context, k packageMissingKind) {
	s.release(k.GroupKind()) // start may watch its deletions already
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.manager.Serves(k.GroupKind()) {
		return
	}
	w, err := s.newBrokenWatcher(k)
	if err != nil {
		w.end()
		s.log.Error(err, "resources of a broken package cannot be watched", "package", k.pkg, "kind", k.GroupKind().String())
		return
	}
	s.run(ctx, k.GroupKind(), w.run).broken = w
}

// run begins to watch a kind. The caller holds the lock.
func (s *packageMissingTeardown) run(ctx context.Context, kind schema.GroupKind, watch func(context.Context)) *kindWatch {
	ctx, stop := context.WithCancel(ctx)
	k := &kindWatch{stop: stop, done: make(chan struct{})}
	s.watched[kind] = k
	s.watching.Go(func() {
		defer close(k.done)
		watch(ctx)
	})
	return k
}

// release stops the watch of a kind whose package is loaded from now on, and returns when
// no reconcile of it runs any more: two controllers must not act on one resource.
func (s *packageMissingTeardown) release(kind schema.GroupKind) {
	s.mu.Lock()
	k := s.watched[kind]
	delete(s.watched, kind)
	s.mu.Unlock()
	if k == nil {
		return
	}
	k.stop()
	<-k.done
}

// A watcher is the controller of a kind whose package is missing. It has a cache of its own, which
// ends with it: a cache that cannot sync must not block the others.
type watcher struct {
	teardown  *packageMissingTeardown
	kind      packageMissingKind
	resources *watch.Resources
	// of has those of the kind.
	of         *watch.KindResources
	objects    *watch.Cluster
	leave      func()
	reconciler *reconcile.Reconciler
	controller controller.Controller
	// name is that of the controller.
	name string
	// again has the resources that are to be reconciled without an event.
	again enqueuer
}

// newWatcher returns a watcher that reconciles the resources of a kind. It watches nothing yet.
func (s *packageMissingTeardown) newWatcher(k packageMissingKind, name string, reconcileOf func(*reconcile.Reconciler) reconcileFunc) (*watcher, error) {
	m := s.manager
	by, done, err := m.identityOf(m.accountWithout(k))
	if err != nil {
		return nil, err
	}
	w := &watcher{teardown: s, kind: k, leave: done}
	w.resources, err = watch.NewResources(by, m.options.Namespaces, cache.Options{DefaultLabelSelector: m.options.Selector, DefaultTransform: watch.TransformResource(m.options.Log)})
	if err != nil {
		return w, err
	}
	w.of = w.resources.Of(k.GroupVersionKind, k.scope())
	w.reconciler = &reconcile.Reconciler{
		Kind: k.GroupVersionKind, Resources: ownResources{w.of.Cluster(by.caches), m.options.Shard}, Recorder: by.recorder, Now: time.Now,
		ReachWithoutPackage: k.reach,
		Allow:               m.options.Allow,
	}
	w.name = name + "." + strings.ToLower(k.GroupKind().String())
	ours := m.options.Shard.only(w.of.UID, w.reconciles(reconcileOf(w.reconciler)), w.reconciler.Forget)
	w.controller, err = m.newController(w.name, k.Kind, k.pkg, ours, newFairQueue(m.workers(), m.suspect))
	if err != nil {
		return w, err
	}
	w.objects = by.caches.Cluster(watch.OwnerKind{GroupKind: k.GroupKind(), Serves: m.options.servesResourcesIn, Limit: newEventRateLimits(m.options.Log).limited}, w.controller, nil)
	w.reconciler.Cluster = w.objects
	return w, nil
}

// watch makes the controller reconcile the resource of each event that the predicates let through.
func (w *watcher) watch(predicates ...predicate.Predicate) error {
	enqueue := &handler.TypedEnqueueRequestForObject[client.Object]{}
	for _, of := range w.of.Sources(enqueue, append([]predicate.Predicate{w.teardown.manager.options.Shard.predicate()}, predicates...)...) {
		if err := w.controller.Watch(of); err != nil {
			return err
		}
	}
	return nil
}

// end ends what a watcher uses that does not run.
func (w *watcher) end() {
	if w != nil {
		w.leave()
	}
}

// run watches until the context ends.
func (w *watcher) run(ctx context.Context) {
	defer w.leave()
	var reading sync.WaitGroup
	reading.Go(func() { _ = w.resources.Start(ctx) }) // it ends with its context
	if err := w.controller.Start(ctx); err != nil && ctx.Err() == nil {
		w.teardown.log.Error(err, "resources without their package are not watched any more", "package", w.kind.pkg, "kind", w.kind.GroupKind().String())
	}
	reading.Wait()
	measured.Controller(w.name).Remove()
}

// newTeardownWatcher returns a watcher that tears down the deleted resources of a kind.
func (s *packageMissingTeardown) newTeardownWatcher(k packageMissingKind) (*watcher, error) {
	w, err := s.newWatcher(k, "teardown", func(r *reconcile.Reconciler) reconcileFunc { return r.ReconcilePackageMissing })
	if err != nil {
		return w, err
	}
	torndown := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil && hasFinalizer(o) })
	return w, w.watch(specOrMetadataChanged, torndown)
}

// newBrokenWatcher returns a watcher of all resources of a kind whose package is broken.
func (s *packageMissingTeardown) newBrokenWatcher(k packageMissingKind) (*watcher, error) {
	elsewhere := func() {
		s.log.Info("a package is broken here, and another process serves its kind, so the resources do not report the fault", "package", k.pkg, "kind", k.GroupKind().String())
	}
	w, err := s.newWatcher(k, "broken", func(r *reconcile.Reconciler) reconcileFunc {
		return s.reconcileBroken(r, newBrokenReporter(r, func() string { return s.faultOf(k.pkg) }, elsewhere))
	})
	if err != nil {
		return w, err
	}
	if err := w.controller.Watch(&w.again); err != nil {
		return w, err
	}
	return w, w.watch(predicate.Or[client.Object](specOrMetadataChanged, questionAnswered))
}

// enqueueAll reconciles each resource.
func (w *watcher) enqueueAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watch.SyncTimeout) // a kind that cannot be listed blocks no other
	defer cancel()
	_ = w.again.enqueueAll(ctx, w.of) // if this fails, the watch enqueues all once it begins
}

// reconcileBroken returns the function that reconciles resources whose package is broken. It tears
// down deleted ones.
func (s *packageMissingTeardown) reconcileBroken(r *reconcile.Reconciler, u *brokenReporter) reconcileFunc {
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		cr, err := r.Resources.GetCached(ctx, cluster.Ref{GroupVersionKind: r.Kind, Namespace: key.Namespace, Name: key.Name})
		switch {
		case err != nil:
			return 0, err
		case cr == nil:
			u.forget(key)
			return r.ReconcilePackageMissing(ctx, key) // it forgets the resource, too
		case cr.GetDeletionTimestamp() == nil:
			if err := s.brokenLimiter.Wait(ctx); err != nil {
				return 0, err
			}
			return u.reconcile(ctx, key)
		case s.tearsDown():
			return r.ReconcilePackageMissing(ctx, key) // a client waits for its deletion, and not all of its objects are deleted
		}
		return 0, nil
	}
}

// hasFinalizer reports whether a resource has the engine's finalizer.
func hasFinalizer(o metav1.Object) bool {
	return slices.Contains(o.GetFinalizers(), reconcile.Finalizer)
}

// reconciles returns the function of the watcher's controller. It reconciles a resource again if that was
// changed since it was read: the change may be of another process that serves the kind.
func (w *watcher) reconciles(once reconcileFunc) reconcileFunc {
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		again, err := once(ctx, key)
		if apierrors.IsConflict(err) {
			return firstRetry, nil
		}
		return w.objects.Requeue(watch.RequestFrom(ctx), again), err
	}
}
