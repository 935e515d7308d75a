package controller

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/capsule"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/history"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/worker"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// A packageController reconciles the custom resources of one package.
type packageController struct {
	name     string
	limits   *eventRateLimits
	history  *history.KindLog
	enqueuer enqueuer
	fair     *fairQueue
	// program is the version of the package that the next reconcile uses.
	program atomic.Pointer[evaluate.Evaluator]
	// canary is the version that some resources are reconciled with in place of that, or nil.
	canary atomic.Pointer[canaryVersion]
	// pins are the versions that resources may be pinned to, or nil if none may.
	pins       atomic.Pointer[pinnedVersions]
	reconciler *reconcile.Reconciler
	objects    *watch.Cluster
	// resources are the custom resources of the package.
	resources *watch.KindResources
	// as is who sends the requests for its resources, and leave ends the use of that.
	as    *identity
	leave func()
	// patches is what reads Patches for the reconciler.
	patches  cluster.Cluster
	capsules *capsule.Recorder
	// deselected are the resources that may have left the selector, or nil without one.
	deselected *deselectedResources
	// account is the check of its account, or nil.
	account *accountCheck
	// fault is what is wrong with the present files of the package while an earlier version of it is
	// loaded, or "".
	fault atomic.Value
	// added says that everything above is there, for those who do not wait for that.
	added atomic.Bool
	// parts are what the manager runs for the controller.
	parts []*stoppable
}

// use makes the next reconciles use a version of the package, and notes what is wrong with its present
// files.
func (c *packageController) use(by *evaluate.Evaluator, fault string) {
	c.program.Store(by)
	c.fault.Store(fault)
}

// packageFault returns what is wrong with the present files of the package, or "".
func (c *packageController) packageFault() string {
	fault, _ := c.fault.Load().(string)
	return fault
}

// reconcile reconciles a resource once. A write may unblock another component: the watch event of the
// written object reconciles the resource again.
func (c *packageController) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	if err := c.deselected.report(ctx, key); err != nil {
		return 0, err
	}
	ctx = withWaiter(ctx, waiter{waiterKey{c.name, ctrl.Request{NamespacedName: key}}, func() {
		c.history.Note(key, history.Event{Trigger: history.Trigger{Cause: history.Permitted}})
		c.enqueuer.enqueueBehind(key)
	}})
	chosen, err := c.choose(ctx, key)
	switch {
	case err != nil:
		return 0, err
	case chosen.by == nil && chosen.why == "":
		return pinAgain, nil
	case chosen.by == nil:
		return 0, c.reconciler.ReportRevisionUnusable(ctx, key, chosen.why)
	}
	by := chosen.by
	ctx, reading := c.capsules.Begin(ctx)
	again, err := c.reconciler.Reconcile(ctx, key, observedPackage{boundPackage{by, ctx}, c.objects})
	c.capsules.End(reading, capsule.Step{Kind: c.reconciler.Kind, Key: key, Err: err, Version: func(ctx context.Context) plan.Version {
		return plannedVersion(worker.WithPlan(ctx), by, packages.Candidate{Program: by.Program})
	}})
	return c.objects.Requeue(watch.RequestFrom(ctx), again), err
}

// forget forgets a resource that another process reconciles.
func (c *packageController) forget(key types.NamespacedName) {
	c.reconciler.Forget(key)
	c.deselected.take(key) // the process of the first shard reports it
}

// enqueueReaders enqueues resources that read an object, as soon as the limits of events allow it. For
// the zero value it enqueues them at once.
func (c *packageController) enqueueReaders(e watch.InputEvent, keys ...types.NamespacedName) {
	delays := make([]time.Duration, len(keys))
	if e != (watch.InputEvent{}) {
		delays = c.limits.delays(e.Of, keys)
	}
	for i, key := range keys {
		if e != (watch.InputEvent{}) {
			c.fair.forgetSpeed(ctrl.Request{NamespacedName: key})
		}
		c.history.Note(key, inputEvent(e))
		c.enqueuer.enqueueAfter(key, delays[i])
	}
}

// Serve adds the controller of a package. It errors with a TakenError if another package with the same
// kind has one.
func (m *Manager) Serve(p *program.Program) error { return m.ServeOutdated(p, "", nil) }

// ServeOutdated is Serve for an earlier version of a package. The status of each resource
// says that, and what is wrong with the present one. Some are reconciled with the version of a canary, if it is not nil.
func (m *Manager) ServeOutdated(p *program.Program, fault string, canary *packages.Canary) error {
	kind := p.GroupVersionKind().GroupKind()
	c := &packageController{name: p.Name(), capsules: m.options.Capsules, limits: newEventRateLimits(m.options.Log), fair: newFairQueue(m.workers(), m.suspect), history: m.history.ForKind(kind)}
	c.fair.history = c.history
	c.use(m.takePrepared(p), fault)
	c.canary.Store(m.canaryVersion(c, canary))
	m.mu.RLock()
	account, pins := m.accounts[kind], m.pins[kind]
	m.mu.RUnlock()
	c.pins.Store(pins)
	var err error
	if c.as, c.leave, err = m.identityOf(account); err != nil {
		return fmt.Errorf("package %s: %w", p.Name(), err)
	}
	if err := m.claim(kind, c, p); err != nil {
		c.leave()
		return err
	}
	m.packageMissing.release(kind)
	if err := m.add(c, p); err != nil {
		m.abandon(kind, c) // the kind may be served later
		return fmt.Errorf("package %s: %w", p.Name(), err)
	}
	m.certificates.wake() // it may have versions to convert
	return nil
}

// controllerName returns the name of the controller of a kind.
func controllerName(kind schema.GroupKind) string { return strings.ToLower(kind.String()) }

// measure has the metrics ask what only this controller knows.
func (c *packageController) measure(name string) {
	measured.Controller(name).Parked(c.fair.waiting)
	measured.Controller(name).Refused(c.resources.Refused)
}

// add creates the controller of a package and adds it to the manager.
func (m *Manager) add(c *packageController, p *program.Program) error {
	gvk := p.GroupVersionKind()
	others := newDuplicateOperator(m.reportDuplicateOperator(c.as))
	// The name has the group, because another package may have a kind of the same name.
	name := controllerName(gvk.GroupKind())
	c.resources = c.as.resources.Of(gvk, scopeOf(p))
	c.measure(name)
	c.fair.uid = c.resources.UID
	ours := m.options.Shard.only(c.resources.UID, c.reconcile, c.forget)
	ctrlr, err := m.newController(name, gvk.Kind, p.Name(), ours, c.fair)
	if err != nil {
		return err
	}
	inputs := watch.NewInputs(c.as, c.enqueueReaders)
	if err := m.addPart(c, inputs); err != nil {
		return err
	}
	c.objects = c.as.caches.Cluster(watch.OwnerKind{
		GroupKind: gvk.GroupKind(), Limit: func(h handler.EventHandler) handler.EventHandler {
			return noting(c.history, history.Object, c.limits.limited(batched(h)))
		},
		Reach:  func() program.Reach { return c.program.Load().Reach() },
		Serves: m.options.servesResourcesIn,
		UID:    c.resources.UID,
	}, ctrlr, inputs)
	targets := patchTargets{kind: gvk, scope: c.objects.Scope}
	enqueueTargets := urgently(c.limits.limited(handler.EnqueueRequestsFromMapFunc(c.fair.forgettingSpeed(targets.requests))))
	c.patches, err = c.as.patches.Reader(ctrlr, noting(c.history, history.Patch, enqueueTargets), patchSpecChanged, c.enqueueAfterPermissionChange)
	if err != nil {
		return err
	}
	c.reconciler = &reconcile.Reconciler{
		Kind:           gvk,
		Resources:      c.capsules.Cluster(observedStatus{ownResources{c.resources.Cluster(c.as.caches), m.options.Shard}, others}),
		Cluster:        c.capsules.Cluster(c.objects),
		Patches:        c.capsules.Cluster(c.patches),
		Recorder:       c.as.recorder,
		WatchInputs:    inputs.Refer,
		Subsystem:      m.subsystems.has,
		FinishedObject: c.as.caches.Finished,
		PackageFault:   c.packageFault,
		PatchesUnread:  c.as.patches.Unread,
		ConfigMap:      m.options.ConfigMap,
		Allow:          m.options.Allow,
		Tracer:         m.options.Tracer,
		Observer:       measured.Controller(name),
		Now:            time.Now,
	}
	if err := m.watchResources(c, ctrlr, others); err != nil {
		return err
	}
	if err := ctrlr.Watch(&c.enqueuer); err != nil {
		return err
	}
	if err := m.addAccountCheck(c, p); err != nil {
		return err
	}
	c.added.Store(true)
	return m.addPart(c, m.held.untilReleased(gvk.GroupKind(), ctrlr))
}

// watchResources makes a controller reconcile its resources when they change.
func (m *Manager) watchResources(c *packageController, ctrlr controller.Controller, others *duplicateOperator) error {
	kind := c.reconciler.Kind
	if m.options.Selector != nil {
		c.deselected = newDeselectedResources(m.options.Selector, kind, c.as.caches.Direct, m.options.Log, c.as.recorder)
	}
	if m.options.LeaderElection {
		c.resources.Warm()
	}
	enqueueResource := noting(c.history, history.Resource, urgently(&handler.EnqueueRequestForObject{}))
	sources := c.resources.Sources(enqueueResource,
		m.options.Shard.predicate(), c.deselected.predicate(), others.predicate(), specOrMetadataChanged, c.fair.noteChanges())
	for _, of := range sources {
		if err := ctrlr.Watch(of); err != nil {
			return err
		}
	}
	return nil
}

// scopeOf returns the scope of the custom resources of a package.
func scopeOf(p *program.Program) cluster.Scope {
	if p.Meta().ClusterScoped {
		return cluster.ClusterScoped
	}
	return cluster.Namespaced
}

// reportDuplicateOperator returns a function that reports that another process reconciles the kind of a resource as well.
func (m *Manager) reportDuplicateOperator(by *identity) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		e := reconcile.ServedTwice()
		m.options.Log.Info(e.Message, "kind", u.GroupVersionKind().GroupKind().String(), "resource", client.ObjectKeyFromObject(u).String())
		by.recorder.Record(u, e)
	}
}

// workers is the number of workers of each controller.
func (m *Manager) workers() int { return max(1, m.options.Concurrency) }

// newController returns a controller of a kind, which does not run yet. The package may be "", and the
// fair queue nil for a controller that evaluates no package.
func (m *Manager) newController(name, kind, pkg string, f reconcileFunc, fair *fairQueue) (controller.Controller, error) {
	r := newBackoffReconciler(f, m.running, kind, fair, measured.Controller(name))
	var newQueue func(string, workqueue.TypedRateLimiter[ctrl.Request]) requestQueue
	concurrent := m.workers()
	if fair != nil {
		newQueue, concurrent = fair.newQueue, fair.workers.concurrent()
	}
	return controller.NewTypedUnmanaged(name, controller.TypedOptions[ctrl.Request]{
		Reconciler:              r,
		SkipNameValidation:      new(true), // the kinds of a manager differ, and a process may have several
		MaxConcurrentReconciles: concurrent,
		CacheSyncTimeout:        cacheSyncTimeout,
		RateLimiter:             r,
		NewQueue:                newQueue,
		LogConstructor: func(req *ctrl.Request) logr.Logger {
			l := m.options.Log
			if pkg != "" {
				l = l.WithValues("package", pkg)
			}
			if req == nil {
				return l.V(1) // the library's own messages about its watches
			}
			return l.WithValues(kind, req.NamespacedName)
		},
	})
}

// controllerOf returns the controller of the kind of a package.
func (m *Manager) controllerOf(p *program.Program) (*packageController, error) {
	kind := p.GroupVersionKind().GroupKind()
	if c := m.controller(kind); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("package %s serves %s, which this process does not; restart it", p.Name(), kind)
}

// enqueueAll reconciles every resource of a package. A manager that is not elected has nothing to do:
// once it is, it begins with all of them.
func (m *Manager) enqueueAll(ctx context.Context, c *packageController) error {
	if !isClosed(m.manager.Elected()) {
		return nil
	}
	keys, err := keysOf(ctx, c.resources)
	c.enqueueForPackage(keys...)
	return err
}

// enqueueAfterPermissionChange reconciles every resource of a package, because the operator has gained or lost the permission to
// read their Patches. A controller that has not started yet needs nothing: it begins with all resources.
func (c *packageController) enqueueAfterPermissionChange() {
	keys, err := keysOf(context.Background(), c.resources) // of the cache: it waits for nothing
	if err != nil {
		return // who cannot be listed has no status that would be wrong
	}
	for _, key := range keys {
		c.history.Note(key, history.Event{Trigger: history.Trigger{Cause: history.Permitted}})
	}
	c.enqueuer.enqueueBehind(keys...)
}

// enqueueForPackage enqueues resources because the package has another version, or another state.
func (c *packageController) enqueueForPackage(keys ...types.NamespacedName) {
	for _, key := range keys {
		c.history.Note(key, history.Event{Trigger: history.Trigger{Cause: history.Package, Digest: c.program.Load().Digest()}})
	}
	c.enqueuer.enqueueBehind(keys...)
}

// VersionsServed returns the digests of the packages that the resources of a kind were last
// reconciled with. It asks the API server, and errors when the kind cannot be listed.
func (m *Manager) VersionsServed(ctx context.Context, kind schema.GroupVersionKind) (map[string]bool, error) {
	by, done, err := m.identityOf(m.accountOf(kind.GroupKind()))
	if err != nil {
		return nil, err
	}
	defer done()
	out := map[string]bool{}
	for _, namespace := range m.options.Namespaces.Lists() {
		if err := m.versionsServedIn(ctx, by.caches.Direct, kind, namespace, out); err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.GroupKind(), err)
		}
	}
	return out, nil
}

// versionsServedIn adds the digests of the packages of the resources in a namespace, or in all for "".
func (m *Manager) versionsServedIn(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, namespace string, into map[string]bool) error {
	list := newList(kind)
	for {
		next := list.GetContinue()
		list = newList(kind)
		if err := from.List(ctx, list, m.options.selection(), client.InNamespace(namespace), client.Limit(page), client.Continue(next)); err != nil {
			return err
		}
		for i := range list.Items {
			digest, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "package", "digest")
			if digest != "" {
				into[digest] = true
			}
		}
		if list.GetContinue() == "" {
			return nil
		}
	}
}

func newList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return l
}
