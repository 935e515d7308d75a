package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// packageController is one package's controller.
type packageController struct {
	name       string
	reconciler *reconciler
	limits     *eventRateLimits
	enqueuer   enqueuer
	fair       *fairQueue
	// fault is what is wrong with the present files of the package, while an earlier
	// version of it serves.
	fault atomic.Value
}

// packageFault returns that, or "".
func (s *packageController) packageFault() string {
	fault, _ := s.fault.Load().(string)
	return fault
}

// Serve adds the controller of a package. It errors with a TakenError when another
// package is served that has the same kind.
func (m *Manager) Serve(p *program.Program) error { return m.ServeOutdated(p, "") }

// ServeOutdated is Serve for an earlier version of a package: the status of each resource
// says that, and what is wrong with the present one.
func (m *Manager) ServeOutdated(p *program.Program, fault string) error {
	kind := p.GroupVersionKind().GroupKind()
	s := &packageController{name: p.Name(), reconciler: &reconciler{}, limits: newEventRateLimits(m.options.Log)}
	s.fair = newFairQueue(m.running, p.GroupVersionKind().Kind, m.workers())
	s.fault.Store(fault)
	if err := m.claim(kind, s, p); err != nil {
		return err
	}
	m.unserved.release(kind)
	if err := m.control(s, p); err != nil {
		return fmt.Errorf("package %s: %w", p.Name(), err)
	}
	return nil
}

// control makes and adds the controller of one package.
func (m *Manager) control(s *packageController, p *program.Program) error {
	gvk := p.GroupVersionKind()
	others := newDuplicateOperator(m.reportDuplicateOperator)
	l := &reconcile.Reconciler{
		Kind:      gvk,
		Resources: observedStatus{m.resources(m.manager.GetClient()), others},
		Recorder:  m.recorder(),
		Now:       time.Now,
		Subsystem: m.subsystems.has,
		Ended:     m.caches.finished.of,
		ConfigMap: m.options.ConfigMap,
		Allow:     m.options.Allow,

		PackageFault: s.packageFault,
	}
	s.reconciler.lifecycle = l
	s.reconciler.use(p)
	// With the group: another package may serve a kind of the same name.
	c, err := m.newController(strings.ToLower(gvk.GroupKind().String()), gvk.Kind, p.Name(), s.reconciler.reconcile, s.fair)
	if err != nil {
		return err
	}
	reach := func() program.Reach { return s.reconciler.program.Load().Reach() }
	objects := newNamespacedCluster(m.caches, ownerKind{GroupKind: gvk.GroupKind(), reach: reach, uid: cachedUID(m.manager.GetCache(), gvk), limits: s.limits}, c)
	l.Cluster = objects
	objects.inputs = m.newInputs(s)
	l.Refer = objects.inputs.refer
	if err := m.manager.Add(objects.inputs); err != nil {
		return err
	}
	about := targets{kind: gvk, scope: l.Cluster.Scope}
	l.Patches, err = m.patches.join(c, s.limits.limited(handler.EnqueueRequestsFromMapFunc(s.fair.forgettingSpeed(about.requests))), specOnly)
	if err != nil {
		return err
	}
	if err := s.watch(c, m.manager.GetCache(), gvk, others.predicate()); err != nil {
		return err
	}
	return m.manager.Add(c)
}

// reportDuplicateOperator says that another process serves the kind of a resource as well.
func (m *Manager) reportDuplicateOperator(u *unstructured.Unstructured) {
	e := reconcile.ServedTwice()
	m.options.Log.Info(e.Message, "kind", u.GroupVersionKind().GroupKind().String(), "resource", client.ObjectKeyFromObject(u).String())
	m.recorder().Record(u, e)
}

// workers is how many steps of a kind are taken at once.
func (m *Manager) workers() int { return max(1, m.options.Concurrency) }

// newController returns a controller of a kind that does not run yet; "" is no package. With
// lanes, its steps go by them: those that evaluate.
func (m *Manager) newController(name, kind, pkg string, s reconcileFunc, l *fairQueue) (controller.Controller, error) {
	r := newBackoffReconciler(s, m.running, kind, l)
	var newQueue func(string, workqueue.TypedRateLimiter[ctrl.Request]) requestQueue
	if l != nil {
		newQueue = l.newQueue
	}
	return controller.NewTypedUnmanaged(name, controller.TypedOptions[ctrl.Request]{
		Reconciler:              r,
		SkipNameValidation:      new(true), // the kinds of a manager differ, and a process may have several
		MaxConcurrentReconciles: m.workers(),
		RateLimiter:             r,
		NewQueue:                newQueue,
		LogConstructor: func(req *ctrl.Request) logr.Logger {
			l := m.options.Log
			if pkg != "" {
				l = l.WithValues("package", pkg)
			}
			if req == nil {
				return l.V(1) // what the library says of its watches interests few
			}
			return l.WithValues(kind, req.NamespacedName)
		},
	})
}

// recorder returns what makes events known.
func (m *Manager) recorder() reconcile.Recorder {
	return recorder{m.manager.GetEventRecorder("operetta")}
}

// watch makes the controller reconcile changed resources, and those that a new
// version of the package wakes. The observer sees every change.
func (s *packageController) watch(c controller.Controller, crs cache.Cache, gvk schema.GroupVersionKind, observer predicate.TypedPredicate[client.Object]) error {
	enqueue := s.fair.resourceHandler(&handler.EnqueueRequestForObject{})
	if err := c.Watch(source.Kind[client.Object](crs, object(gvk), enqueue, observer, specOrMetadataChanged)); err != nil {
		return err
	}
	return c.Watch(&s.enqueuer)
}

// Swap makes the controller of a package use another version of it, and reconciles
// every custom resource with that. It errors, and changes nothing, when the new
// version serves another kind.
func (m *Manager) Swap(ctx context.Context, was, p *program.Program) error {
	if got, want := p.GroupVersionKind(), was.GroupVersionKind(); got != want {
		return fmt.Errorf("package %s serves %s now, and %s before; start the operator anew", p.Name(), got, want)
	}
	s := m.servedAs(was)
	if s == nil {
		return errNoController(p)
	}
	s.reconciler.use(p)
	s.fault.Store("")
	return m.enqueueAll(ctx, s)
}

// servedAs returns the controller of the kind of a package, or nil.
func (m *Manager) servedAs(p *program.Program) *packageController {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.controllers[p.GroupVersionKind().GroupKind()]
}

// Outdated says what is wrong with the present files of a package that is served, or, with
// "", that nothing is. The status of each of its resources says so.
func (m *Manager) Outdated(ctx context.Context, p *program.Program, fault string) error {
	s := m.servedAs(p)
	switch {
	case s == nil:
		return errNoController(p)
	case s.fault.Swap(fault) == fault:
		return nil
	}
	return m.enqueueAll(ctx, s)
}

// enqueueAll reconciles every resource of a package. One that does not lead has nobody to wake:
// when it does, it begins with all of them.
func (m *Manager) enqueueAll(ctx context.Context, s *packageController) error {
	select {
	case <-m.manager.Elected():
		return s.enqueueAll(ctx, m.manager.GetClient())
	default:
		return nil
	}
}

// enqueueAll reconciles every resource of the package.
func (s *packageController) enqueueAll(ctx context.Context, c client.Client) error {
	list := newList(s.reconciler.lifecycle.Kind)
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("listing %s: %w", s.reconciler.lifecycle.Kind.Kind, err)
	}
	for i := range list.Items {
		s.enqueuer.enqueueAfter(client.ObjectKeyFromObject(&list.Items[i]), 0)
	}
	return nil
}

// newInputs returns the watches of what the package reads.
func (m *Manager) newInputs(s *packageController) *inputs {
	return &inputs{
		watched: map[inputKey]*inputWatch{},
		refers:  map[types.NamespacedName]map[inputKey]bool{},
		open: func(key inputKey, t *watchErrors) (cache.Cache, error) {
			options, err := inputOptions(key)
			if err != nil {
				return nil, err
			}
			options.HTTPClient, options.Scheme, options.Mapper = m.manager.GetHTTPClient(), m.manager.GetScheme(), m.manager.GetRESTMapper()
			options.DefaultWatchErrorHandler = t.handle
			options.DefaultTransform = cache.TransformStripManagedFields() // no package sees them
			return cache.New(m.manager.GetConfig(), options)
		},
		enqueue: s.enqueueReaders,
	}
}

// enqueueReaders reconciles resources because of an object that they read, as soon as that may
// wake them, and at once because of none.
func (s *packageController) enqueueReaders(of cluster.Ref, keys ...types.NamespacedName) {
	waits := make([]time.Duration, len(keys))
	if of != (cluster.Ref{}) {
		waits = s.limits.delays(of, keys)
	}
	for i, key := range keys {
		if of != (cluster.Ref{}) {
			s.fair.forgetSpeed(ctrl.Request{NamespacedName: key})
		}
		s.enqueuer.enqueueAfter(key, waits[i])
	}
}

// enqueuer is the source of the reconciles that the engine itself asks for.
type enqueuer struct {
	mu    sync.Mutex
	queue requestQueue
}

// Start implements source.Source.
func (w *enqueuer) Start(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = q
	return nil
}

// enqueueAfter reconciles a resource after some time. Before the controller has started there is
// nothing to wake: it begins with all of them.
func (w *enqueuer) enqueueAfter(key types.NamespacedName, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.AddAfter(ctrl.Request{NamespacedName: key}, d)
	}
}

// VersionsServed returns the digests of the packages that the resources of a kind were last
// reconciled with. It asks the API server, and errors when the kind cannot be listed.
func (m *Manager) VersionsServed(ctx context.Context, kind schema.GroupVersionKind) (map[string]bool, error) {
	out := map[string]bool{}
	list := newList(kind)
	for {
		next := list.GetContinue()
		list = newList(kind)
		err := m.caches.direct.List(ctx, list, client.InNamespace(m.options.CustomResourceNamespace), client.Limit(page), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.GroupKind(), err)
		}
		for i := range list.Items {
			digest, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "package", "digest")
			if digest != "" {
				out[digest] = true
			}
		}
		if list.GetContinue() == "" {
			return out, nil
		}
	}
}
