package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
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
	// Ready errors while the process is not to be taken for ready; nil never does.
	Ready func() error
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
	// Allow are the administrative annotations of a resource that count.
	Allow []string
	// CustomResourceNamespace restricts the manager to one namespace; "" is all.
	CustomResourceNamespace string
	// WebhookAddress is where admission webhooks are served, by TLS; "" serves none.
	// WebhookCertDir has their certificate, tls.crt and tls.key, which may change.
	WebhookAddress string
	WebhookCertDir string
	// StepLimit is how long a step may go on without an answer of the API server until the
	// process counts as ill, see /healthz; 0 is for ever.
	StepLimit time.Duration
	// Strays says what is done about deleted resources whose package is not served;
	// "" tears them down.
	Strays Strays
}

// Manager runs one controller for each package. Its methods are safe for concurrent
// use, before Start and while it runs.
type Manager struct {
	manager    manager.Manager
	options    Options
	caches     *objectCaches
	patches    *patches
	subsystems *subsystems
	unserved   *unservedTeardown
	running    *runningReconciles

	mu          sync.RWMutex
	controllers map[schema.GroupKind]*packageController
}

// New returns a manager that serves no package yet. It errors when the cluster cannot
// be reached.
func New(config *rest.Config, options Options) (*Manager, error) {
	mgr, err := manager.New(noteAnswers(cluster.WithAnswers(config)), managerOptions(options))
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	running := newRunningReconciles(options.StepLimit)
	if err := addProbes(mgr, options, running); err != nil {
		return nil, err
	}
	if err := serveMetrics(mgr, options.MetricsAddress); err != nil {
		return nil, err
	}
	if err := serveWebhooks(mgr, options); err != nil {
		return nil, err
	}
	kids, err := newObjectCaches(mgr, options.CustomResourceNamespace, newLargeObjects(), options.Log)
	if err != nil {
		return nil, err
	}
	m := &Manager{manager: mgr, options: options, caches: kids, running: running, controllers: map[schema.GroupKind]*packageController{}}
	if m.patches, err = newPatches(mgr, kids.direct, options); err != nil {
		return nil, err
	}
	m.subsystems = newSubsystems(kids.direct, options.Log, m.serves)
	m.unserved = newUnservedTeardown(m)
	return m, mgr.Add(m.unserved)
}

// addProbes says when the process is alive, and when it is ready.
func addProbes(mgr manager.Manager, o Options, running *runningReconciles) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("steps", running.check); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("caches", synced(mgr.GetCache())); err != nil {
		return err
	}
	if o.Ready == nil {
		return nil
	}
	return mgr.AddReadyzCheck("packages", func(*http.Request) error { return o.Ready() })
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
		NewClient:                     cluster.ConsistentClient,
		GracefulShutdownTimeout:       new(shutdownTimeout),
	}
	_ = clientgoscheme.AddToScheme(out.Scheme) // it never errors; events and leases need it
	out.Cache.DefaultNamespaces = only(o.CustomResourceNamespace)
	out.Cache.SyncPeriod = new(resync)
	out.Cache.DefaultTransform = guarded(o.Log, stripResource)
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

// only restricts a cache to a namespace; "" is all.
func only(namespace string) map[string]cache.Config {
	if namespace == "" {
		return nil
	}
	return map[string]cache.Config{namespace: {}}
}

// cacheOptions are those that every cache of a manager has.
func cacheOptions(mgr manager.Manager) cache.Options {
	return cache.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}
}

// cachedClient returns a consistent client of a manager that reads from a cache.
func cachedClient(mgr manager.Manager, from cache.Cache) (client.Client, error) {
	cl, err := cluster.ConsistentClient(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: from},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the client: %w", err)
	}
	return cl, nil
}

// Start runs the controllers until the context ends or one of them fails.
func (m *Manager) Start(ctx context.Context) error {
	if err := m.watchOrphanPatches(); err != nil {
		return err
	}
	return m.manager.Start(ctx)
}

// PackagesLoaded says that loading of every package was tried: a kind that is not served
// now has no package in this process.
func (m *Manager) PackagesLoaded() { m.unserved.notePackagesLoaded() }

// serves reports whether a package is served that has a kind.
func (m *Manager) serves(kind schema.GroupKind) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.controllers[kind] != nil
}

// Serves reports whether a package is served that has a kind.
func (m *Manager) Serves(kind schema.GroupKind) bool { return m.serves(kind) }

// A TakenError says that two packages have the same kind.
type TakenError struct {
	Kind schema.GroupKind
	// By is the package that serves the kind, and Package the one that would like to.
	By, Package string
}

// Error names the kind and both packages.
func (e *TakenError) Error() string {
	return fmt.Sprintf("packages %s and %s both serve %s", e.By, e.Package, e.Kind)
}

// claim makes a controller the one of a kind.
func (m *Manager) claim(kind schema.GroupKind, s *packageController, p *program.Program) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.controllers[kind]; other != nil {
		return &TakenError{Kind: kind, By: other.name, Package: p.Name()}
	}
	m.controllers[kind] = s
	return nil
}
