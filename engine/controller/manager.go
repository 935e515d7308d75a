package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Options are the settings of a Manager; the zero value serves.
type Options struct {
	// Log receives what the manager and its controllers say.
	Log logr.Logger
	// MetricsAddress and HealthAddress are where metrics and probes are served,
	// such as 127.0.0.1:8080; "" serves none, and port 0 is one that is free, which
	// the log says.
	MetricsAddress string
	HealthAddress  string
	// LeaderElection lets only one of several managers write.
	LeaderElection bool
	// LeaderElectionNamespace is where the lease is; "" is the namespace that the
	// process runs in.
	LeaderElectionNamespace string
	// Concurrency is how many resources of one package are reconciled at once.
	Concurrency int
	// ConfigMap holds configuration for packages, each under the key of its name with
	// .yaml; the zero value is none.
	ConfigMap types.NamespacedName
	// CustomResourceNamespace restricts the manager to one namespace; "" is all.
	CustomResourceNamespace string
}

// Manager runs one controller for each package.
type Manager struct {
	manager     manager.Manager
	controllers map[schema.GroupKind]*served
	patches     *patches
	subsystems  *subsystems
}

// The delays between tries of a reconcile that fails: they double from the first
// to the last. An event reconciles at once all the same.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// leaseRetry is how often a manager that does not lead looks at the lease. Client-go
// adds up to 1.2 times as much again, so that it takes over within two seconds of a
// leader that ends in order.
const leaseRetry = 800 * time.Millisecond

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
	if err := serveMetrics(mgr, options.MetricsAddress); err != nil {
		return nil, err
	}
	children, err := childCache(config, mgr, options)
	if err != nil {
		return nil, err
	}
	m := &Manager{manager: mgr, controllers: map[schema.GroupKind]*served{}}
	m.subsystems = newSubsystems(children.direct, options.Log, func(kind schema.GroupKind) bool { return m.controllers[kind] != nil })
	m.patches = &patches{
		client: mgr.GetClient(), direct: children.direct, cache: mgr.GetCache(), namespace: options.CustomResourceNamespace, log: options.Log,
	}
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
	return m, mgr.Add(m.patches)
}

func managerOptions(o Options) manager.Options {
	out := manager.Options{
		Scheme:                        runtime.NewScheme(),
		Logger:                        o.Log,
		Metrics:                       metricsserver.Options{BindAddress: off}, // see serveMetrics
		HealthProbeBindAddress:        orOff(o.HealthAddress),
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "operetta.dev",
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   new(leaseRetry),
		NewClient:                     consistentClient,
	}
	_ = clientgoscheme.AddToScheme(out.Scheme) // it never errors; events and leases need it
	if o.CustomResourceNamespace != "" {
		out.Cache.DefaultNamespaces = map[string]cache.Config{o.CustomResourceNamespace: {}}
	}
	return out
}

// off is the address that makes the library serve nothing.
const off = "0"

func orOff(address string) string {
	if address == "" {
		return off
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
	// direct is a client without a cache.
	direct client.Client
	// kinds lists what can be listed and deleted.
	kinds func() ([]schema.GroupVersionKind, error)
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
	direct, err := client.New(config, client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return children{}, fmt.Errorf("creating the client: %w", err)
	}
	return children{cache: c, client: cl, direct: direct, kinds: kindsOf(config)}, nil
}

// kindsOf returns every kind of the cluster, in its preferred version, that can be
// listed and deleted.
func kindsOf(config *rest.Config) func() ([]schema.GroupVersionKind, error) {
	return func() ([]schema.GroupVersionKind, error) {
		d, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return nil, err
		}
		lists, err := d.ServerPreferredResources()
		if err != nil && len(lists) == 0 { // a broken aggregated API hides its own kinds only
			return nil, err
		}
		var out []schema.GroupVersionKind
		for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
			for _, r := range list.APIResources {
				out = append(out, schema.FromAPIVersionAndKind(list.GroupVersion, r.Kind))
			}
		}
		return out, nil
	}
}

// Start runs the controllers until the context ends or one of them fails.
func (m *Manager) Start(ctx context.Context) error { return m.manager.Start(ctx) }
