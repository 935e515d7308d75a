package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/lifecycle"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Options are the settings of a Manager; the zero value serves.
type Options struct {
	// Log receives what the manager and its controllers say.
	Log logr.Logger
	// MetricsAddress and HealthAddress are where metrics and probes are served,
	// such as 127.0.0.1:8080; "" serves none.
	MetricsAddress string
	HealthAddress  string
	// LeaderElection lets only one of several managers write.
	LeaderElection bool
	// LeaderElectionNamespace is where the lease is; "" is the namespace that the
	// process runs in.
	LeaderElectionNamespace string
	// Concurrency is how many resources of one package are reconciled at once.
	Concurrency int
	// CustomResourceNamespace restricts the manager to one namespace; "" is all.
	CustomResourceNamespace string
}

// Manager runs one controller for each package.
type Manager struct {
	manager     manager.Manager
	controllers map[schema.GroupKind]*served
}

// served is one package's controller.
type served struct {
	reconciler *reconciler
	wake       chan event.TypedGenericEvent[client.Object]
}

// The delays between tries of a reconcile that fails: they double from the first
// to the last. An event reconciles at once all the same.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// New returns a manager for packages. It errors when two of them serve the same
// kind, or the cluster cannot be reached.
func New(config *rest.Config, options Options, programs ...*program.Program) (*Manager, error) {
	mgr, err := manager.New(config, managerOptions(options))
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("caches", synced(mgr.GetCache())); err != nil {
		return nil, err
	}
	children, err := childCache(config, mgr, options)
	if err != nil {
		return nil, err
	}
	m := &Manager{manager: mgr, controllers: map[schema.GroupKind]*served{}}
	kinds := map[schema.GroupKind]string{}
	for _, p := range programs {
		kind := p.GroupVersionKind().GroupKind()
		if other, taken := kinds[kind]; taken {
			return nil, fmt.Errorf("packages %s and %s both serve %s", other, p.Name(), kind)
		}
		kinds[kind] = p.Name()
		if err := m.serve(p, children, options); err != nil {
			return nil, fmt.Errorf("package %s: %w", p.Name(), err)
		}
	}
	return m, nil
}

func managerOptions(o Options) manager.Options {
	out := manager.Options{
		Scheme:                        runtime.NewScheme(),
		Logger:                        o.Log,
		Metrics:                       metricsserver.Options{BindAddress: orOff(o.MetricsAddress)},
		HealthProbeBindAddress:        orOff(o.HealthAddress),
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "operetta.dev",
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			return consistentClient(config, options)
		},
	}
	_ = clientgoscheme.AddToScheme(out.Scheme) // it never errors; events and leases need it
	if o.CustomResourceNamespace != "" {
		out.Cache.DefaultNamespaces = map[string]cache.Config{o.CustomResourceNamespace: {}}
	}
	return out
}

func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// consistentClient returns a client whose reads of unstructured objects come from
// the cache and see its own writes.
func consistentClient(config *rest.Config, options client.Options) (client.Client, error) {
	yes := true
	options.Cache.Unstructured = true
	options.Cache.EnableReadYourWritesConsistency = &yes
	return client.New(config, options)
}

// children is the cache of what packages own and the client that reads from it.
type children struct {
	cache  cache.Cache
	client client.Client
}

// childCache returns a cache that holds only what the engine has written, by its
// label: the memory does not grow with what else is in the cluster.
func childCache(config *rest.Config, mgr manager.Manager, o Options) (children, error) {
	ours, err := labels.Parse(plan.OwnerMark)
	if err != nil {
		return children{}, err
	}
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultLabelSelector: ours,
	}
	if o.CustomResourceNamespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.CustomResourceNamespace: {}}
	}
	c, err := cache.New(config, options)
	if err != nil {
		return children{}, fmt.Errorf("creating the cache: %w", err)
	}
	if err := mgr.Add(c); err != nil {
		return children{}, err
	}
	cl, err := consistentClient(config, client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: c},
	})
	if err != nil {
		return children{}, fmt.Errorf("creating the client: %w", err)
	}
	return children{cache: c, client: cl}, nil
}

// serve adds the controller of one package.
func (m *Manager) serve(p *program.Program, kids children, o Options) error {
	gvk := p.GroupVersionKind()
	l := &lifecycle.Lifecycle{
		Kind:     gvk,
		Store:    &store{kind: gvk, client: m.manager.GetClient()},
		Recorder: recorder{m.manager.GetEventRecorder("operetta")},
		Now:      time.Now,
	}
	r := &reconciler{lifecycle: l}
	r.use(p)
	// With the group: another package may serve a kind of the same name.
	name := strings.ToLower(gvk.GroupKind().String())
	c, err := controller.NewTypedUnmanaged(name, controller.TypedOptions[reconcile.Request]{
		Reconciler:              r,
		MaxConcurrentReconciles: max(1, o.Concurrency),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		LogConstructor: func(req *reconcile.Request) logr.Logger {
			l := o.Log.WithValues("package", p.Name())
			if req != nil {
				l = l.WithValues(gvk.Kind, req.NamespacedName)
			}
			return l
		},
	})
	if err != nil {
		return err
	}
	w := &watches{owner: gvk.GroupKind(), cache: kids.cache, controller: c, started: map[schema.GroupVersionKind]bool{}}
	l.Cluster = &cluster.Live{Client: kids.client, API: m.manager.GetAPIReader(), Watch: w.ensure}
	s := &served{reconciler: r, wake: make(chan event.TypedGenericEvent[client.Object])}
	m.controllers[gvk.GroupKind()] = s
	if err := s.watch(c, m.manager.GetCache(), gvk); err != nil {
		return err
	}
	return m.manager.Add(c)
}

// watch makes the controller reconcile changed resources, and those that a new
// version of the package wakes.
func (s *served) watch(c controller.Controller, crs cache.Cache, gvk schema.GroupVersionKind) error {
	enqueue := &handler.TypedEnqueueRequestForObject[client.Object]{}
	if err := c.Watch(source.Kind[client.Object](crs, object(gvk), enqueue, meaningful)); err != nil {
		return err
	}
	return c.Watch(source.Channel(s.wake, enqueue))
}

// Start runs the controllers until the context ends or one of them fails.
func (m *Manager) Start(ctx context.Context) error { return m.manager.Start(ctx) }

// Swap makes the controller of a package use another version of it, and reconciles
// every custom resource with that. It errors, and changes nothing, when no
// controller serves the package or the new version serves another kind.
func (m *Manager) Swap(ctx context.Context, p *program.Program) error {
	s, ok := m.controllers[p.GroupVersionKind().GroupKind()]
	if !ok {
		return errNotServed(p)
	}
	if got, want := p.GroupVersionKind(), s.reconciler.lifecycle.Kind; got != want {
		return fmt.Errorf("package %s serves %s now, and %s before; start the operator anew", p.Name(), got, want)
	}
	s.reconciler.use(p)
	return s.wakeAll(ctx, m.manager.GetClient())
}

// wakeAll reconciles every resource of the package.
func (s *served) wakeAll(ctx context.Context, c client.Client) error {
	list := newList(s.reconciler.lifecycle.Kind)
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("listing %s: %w", s.reconciler.lifecycle.Kind.Kind, err)
	}
	for i := range list.Items {
		select {
		case s.wake <- event.TypedGenericEvent[client.Object]{Object: &list.Items[i]}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
