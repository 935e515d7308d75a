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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Strays says what happens to a custom resource that is being deleted, has the engine's
// finalizer, and whose package is not served: the package is gone, or was broken when the
// process started.
type Strays string

// The ways to treat them.
const (
	// StraysTeardown deletes their objects, which their inventories list.
	StraysTeardown Strays = "teardown"
	// StraysLeave leaves them to other processes.
	StraysLeave Strays = "leave"
)

// unservedTeardown tears down deleted resources whose package is not served. It finds their
// kinds by the label of their CustomResourceDefinitions, once: a resource that is created
// later has no objects before its package is served. It watches a kind only if a resource of
// it has the engine's finalizer, and stops when the package is served.
//
// It watches all resources of a kind whose package is broken, as each of them reports that.
type unservedTeardown struct {
	manager *Manager
	log     logr.Logger
	// statusLimiter limits the status writes that report broken packages.
	statusLimiter flowcontrol.RateLimiter

	packagesLoaded     chan struct{}
	notePackagesLoaded func()
	// changed signals that a package broke or was mended.
	changed chan struct{}

	mu       sync.Mutex
	watched  map[schema.GroupKind]*kindWatch
	broken   map[string]*brokenPackage // by their folders
	watching sync.WaitGroup
}

// A kindWatch is a running watch of one kind.
type kindWatch struct {
	stop context.CancelFunc
	done chan struct{}
	// enqueueAll looks at every resource once more; nil for a kind whose package is not broken.
	enqueueAll enqueueAllFunc
}

// An enqueueAllFunc looks at every resource of a kind, until it is not watched any more.
type enqueueAllFunc func(ctx context.Context, done <-chan struct{})

func newUnservedTeardown(m *Manager) *unservedTeardown {
	s := &unservedTeardown{
		manager: m, log: m.options.Log, packagesLoaded: make(chan struct{}), watched: map[schema.GroupKind]*kindWatch{},
		changed: make(chan struct{}, 1), broken: map[string]*brokenPackage{},
		statusLimiter: flowcontrol.NewTokenBucketRateLimiter(statusRate, 1),
	}
	s.notePackagesLoaded = sync.OnceFunc(func() { close(s.packagesLoaded) })
	return s
}

// statusRate is how many statuses are written in a second when all resources of a package
// are told of something at once.
const statusRate = 200

// Start implements manager.Runnable.
func (s *unservedTeardown) Start(ctx context.Context) error {
	var following sync.WaitGroup
	following.Go(func() { s.followBroken(ctx) })
	select {
	case <-s.packagesLoaded:
		if s.tearsDown() {
			s.lookForWaiting(ctx)
		}
		<-ctx.Done()
	case <-ctx.Done():
	}
	following.Wait()
	s.watching.Wait()
	return nil
}

// tearsDown reports whether deleted resources are torn down rather than left to others.
func (s *unservedTeardown) tearsDown() bool { return s.manager.options.Strays != StraysLeave }

// lookForWaiting watches the kinds that have resources with the engine's finalizer.
func (s *unservedTeardown) lookForWaiting(ctx context.Context) {
	var found []packageMissingKind
	s.retry(ctx, func() (err error) { found, err = s.find(ctx); return err })
	var names []string
	for _, k := range found {
		if s.start(ctx, k) {
			names = append(names, k.pkg)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		s.log.Info("deletions that nobody else completes are completed here, for resources of packages that do not run here", "packages", slices.Compact(names))
	}
}

// retry calls a function with backoff until it succeeds or the context ends.
func (s *unservedTeardown) retry(ctx context.Context, try func() error) {
	again := wait.Backoff{Duration: firstRetry, Factor: 2, Steps: 10, Cap: lastRetry}
	_ = again.DelayFunc().Until(ctx, true, false, func(context.Context) (bool, error) {
		err := try()
		if err != nil {
			s.log.Info("looking for resources without their package failed, trying again", "error", err.Error())
		}
		return err == nil, nil
	})
}

// outOfScope reports whether a kind is served, or outside of the manager's namespace.
func (s *unservedTeardown) outOfScope(k packageMissingKind) bool {
	return s.manager.serves(k.GroupKind()) || s.manager.options.CustomResourceNamespace != "" && !k.namespaced
}

// find returns the kinds of packages that are not served and have a resource with the
// engine's finalizer.
func (s *unservedTeardown) find(ctx context.Context) ([]packageMissingKind, error) {
	kinds, err := s.kinds(ctx)
	if err != nil {
		return nil, err
	}
	var out []packageMissingKind
	for _, k := range kinds {
		if s.outOfScope(k) {
			continue
		}
		waiting, err := s.hasWaiting(ctx, k)
		switch {
		case apierrors.IsForbidden(err):
			s.log.Info("resources without their package are not looked at: the operator may not list them", "package", k.pkg, "kind", k.GroupKind().String())
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		case waiting:
			out = append(out, k)
		}
	}
	return out, nil
}

// kinds returns the kinds of all packages.
func (s *unservedTeardown) kinds(ctx context.Context) ([]packageMissingKind, error) {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(definitionKind.GroupVersion().WithKind(definitionKind.Kind + "List"))
	err := s.manager.caches.direct.List(ctx, definitions, client.HasLabels{crd.PackageLabel})
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

// An packageMissingKind is the kind of a package that is not served.
type packageMissingKind struct {
	schema.GroupVersionKind
	pkg        string
	namespaced bool
	// reach is what the definition says of where the objects of its resources may be; nil
	// is nothing that can be read, as of a definition from before that was said.
	reach *program.Reach
}

// kindsDefined returns the kinds of definitions in the versions that the cluster
// prefers. A definition that is not served yet has no resources.
func kindsDefined(definitions []metav1.PartialObjectMetadata, served []*metav1.APIResourceList) []packageMissingKind {
	defined := map[string]metav1.PartialObjectMetadata{}
	for _, d := range definitions {
		defined[d.Name] = d
	}
	var out []packageMissingKind
	for _, list := range served {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			d, ours := defined[r.Name+"."+gv.Group]
			if ours && !strings.Contains(r.Name, "/") {
				out = append(out, packageMissingKind{GroupVersionKind: gv.WithKind(r.Kind), pkg: d.Labels[crd.PackageLabel], namespaced: r.Namespaced, reach: reachOf(d)})
			}
		}
	}
	return out
}

// reachOf returns what a definition says of the reach of its package, or nil.
func reachOf(definition metav1.PartialObjectMetadata) *program.Reach {
	text, said := definition.Annotations[crd.ReachAnnotation]
	reach, err := program.ParseReach(text)
	if !said || err != nil {
		return nil
	}
	return &reach
}

// page is how many resources are listed at once.
const page = 500

// hasWaiting reports whether a kind has a resource with the engine's finalizer.
func (s *unservedTeardown) hasWaiting(ctx context.Context, k packageMissingKind) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	for {
		next := list.Continue
		list = &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		err := s.manager.caches.direct.List(ctx, list, client.InNamespace(s.manager.options.CustomResourceNamespace), client.Limit(page), client.Continue(next))
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

// start watches the deletions of a kind, unless it is watched or its package is served by
// now, and reports whether it has started.
func (s *unservedTeardown) start(ctx context.Context, k packageMissingKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[k.GroupKind()] != nil || s.manager.serves(k.GroupKind()) {
		return false
	}
	watch, err := s.newTeardownWatch(k)
	if err != nil {
		s.log.Error(err, "resources without their package cannot be watched", "package", k.pkg, "kind", k.GroupKind().String())
		return false
	}
	s.run(ctx, k.GroupKind(), watch)
	return true
}

// startBroken watches all resources of a kind whose package is broken.
func (s *unservedTeardown) startBroken(ctx context.Context, k packageMissingKind) {
	s.release(k.GroupKind()) // it may be watched for deletions already
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.manager.serves(k.GroupKind()) {
		return
	}
	watch, enqueueAll, err := s.newBrokenWatch(k)
	if err != nil {
		s.log.Error(err, "resources of a broken package cannot be watched", "package", k.pkg, "kind", k.GroupKind().String())
		return
	}
	s.run(ctx, k.GroupKind(), watch)
	s.watched[k.GroupKind()].enqueueAll = enqueueAll
}

// run begins to watch a kind. The caller holds the lock.
func (s *unservedTeardown) run(ctx context.Context, kind schema.GroupKind, watch func(context.Context)) {
	ctx, stop := context.WithCancel(ctx)
	a := &kindWatch{stop: stop, done: make(chan struct{})}
	s.watched[kind] = a
	s.watching.Go(func() {
		defer close(a.done)
		watch(ctx)
	})
}

// release stops the watch of a kind whose package is served from now on, and returns when
// no step of it runs any more: two controllers must not act on one resource.
func (s *unservedTeardown) release(kind schema.GroupKind) {
	s.mu.Lock()
	a := s.watched[kind]
	delete(s.watched, kind)
	s.mu.Unlock()
	if a == nil {
		return
	}
	a.stop()
	<-a.done
}

// A watcher watches the resources of a kind whose package is not served. It has a cache of
// its own, which ends with it: one that cannot sync must not block the others.
type watcher struct {
	teardown   *unservedTeardown
	kind       packageMissingKind
	resources  cache.Cache
	reader     client.Client
	life       *reconcile.Reconciler
	controller controller.Controller
}

// newWatcher returns a watcher that steps the resources of a kind. It watches nothing yet.
func (s *unservedTeardown) newWatcher(k packageMissingKind, name string, reconcileOf func(*reconcile.Reconciler) reconcileFunc) (*watcher, error) {
	m := s.manager
	w := &watcher{teardown: s, kind: k}
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
		Kind: k.GroupVersionKind, Resources: m.resources(w.reader), Recorder: m.recorder(), Now: time.Now,
		ReachWithoutPackage: k.reach,
		Allow:               m.options.Allow,
	}
	w.controller, err = m.newController(name+"."+strings.ToLower(k.GroupKind().String()), k.Kind, k.pkg, retryConflicts(reconcileOf(w.life)), nil)
	if err != nil {
		return nil, err
	}
	w.life.Cluster = newNamespacedCluster(m.caches, ownerKind{GroupKind: k.GroupKind(), limits: newEventRateLimits(m.options.Log)}, w.controller)
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
		w.teardown.log.Error(err, "resources without their package are not watched any more", "package", w.kind.pkg, "kind", w.kind.GroupKind().String())
	}
	reading.Wait()
}

// newTeardownWatch returns a function that watches a kind and tears its deleted resources
// down until its context ends.
func (s *unservedTeardown) newTeardownWatch(k packageMissingKind) (func(context.Context), error) {
	w, err := s.newWatcher(k, "stray", func(l *reconcile.Reconciler) reconcileFunc { return l.StepPackageMissing })
	if err != nil {
		return nil, err
	}
	stray := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil && hasFinalizer(o) })
	return w.run, w.watch(specOrMetadataChanged, stray)
}

// newBrokenWatch returns a function that watches a kind whose package is broken until its
// context ends, and one that steps all of its resources once more.
func (s *unservedTeardown) newBrokenWatch(k packageMissingKind) (run func(context.Context), enqueueAll enqueueAllFunc, err error) {
	elsewhere := func() {
		s.log.Info("another process serves the kind of a package that is broken here, and what is broken is not said in its resources", "package", k.pkg, "kind", k.GroupKind().String())
	}
	w, err := s.newWatcher(k, "broken", func(l *reconcile.Reconciler) reconcileFunc {
		u := newBrokenReporter(l, func() string { return s.faultOf(k.pkg) }, elsewhere)
		return s.reconcileBroken(l, u)
	})
	if err != nil {
		return nil, nil, err
	}
	w.life.Resources = rateLimitedStatus{w.life.Resources, s.statusLimiter}
	woken := make(chan event.TypedGenericEvent[client.Object])
	enqueue := &handler.TypedEnqueueRequestForObject[client.Object]{}
	if err := w.controller.Watch(source.Channel(woken, enqueue)); err != nil {
		return nil, nil, err
	}
	enqueueAll = func(ctx context.Context, done <-chan struct{}) { w.enqueueAll(ctx, done, woken) }
	return w.run, enqueueAll, w.watch(predicate.Or[client.Object](specOrMetadataChanged, answered))
}

// enqueueAll makes the controller take a step with each resource.
func (w *watcher) enqueueAll(ctx context.Context, done <-chan struct{}, woken chan<- event.TypedGenericEvent[client.Object]) {
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

// reconcileBroken returns the step of a resource whose package is broken. A deleted one is torn down.
func (s *unservedTeardown) reconcileBroken(l *reconcile.Reconciler, u *brokenReporter) reconcileFunc {
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		cr, err := l.Resources.GetCached(ctx, cluster.Ref{GroupVersionKind: l.Kind, Namespace: key.Namespace, Name: key.Name})
		switch {
		case err != nil:
			return 0, err
		case cr == nil || cr.GetDeletionTimestamp() == nil:
			return u.reconcile(ctx, key)
		case s.tearsDown():
			return l.StepPackageMissing(ctx, key)
		}
		return 0, nil
	}
}

// rateLimitedStatus is a cluster whose statuses are written at a pace.
type rateLimitedStatus struct {
	cluster.Cluster

	limiter flowcontrol.RateLimiter
}

// ApplyStatus implements cluster.Cluster.
func (s rateLimitedStatus) ApplyStatus(ctx context.Context, resource *unstructured.Unstructured) error {
	if err := s.limiter.Wait(ctx); err != nil {
		return err
	}
	return s.Cluster.ApplyStatus(ctx, resource)
}

// hasFinalizer reports whether a resource has the engine's finalizer.
func hasFinalizer(o metav1.Object) bool {
	return slices.Contains(o.GetFinalizers(), reconcile.Finalizer)
}

// retryConflicts returns a step that is taken again when the resource was changed since it was
// read: that change may be of another process that serves it.
func retryConflicts(s reconcileFunc) reconcileFunc {
	return func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		again, err := s(ctx, key)
		if apierrors.IsConflict(err) {
			return firstRetry, nil
		}
		return again, err
	}
}
