package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/capsule"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/history"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/worker"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Options are the settings of a Manager. It needs Workers; all else has a default.
type Options struct {
	// Log receives what the manager and its controllers say.
	Log logr.Logger
	// MetricsAddress and HealthAddress are the addresses of metrics and probes, such as
	// 127.0.0.1:8080; "" serves none. For port 0 the system chooses a port, and the log names it.
	MetricsAddress string
	HealthAddress  string
	// MetricsSecure serves metrics by TLS, to those whom the API server allows to get /metrics. MetricsCertDir has
	// the certificate, tls.crt and tls.key, which may change; "" makes one that is self-signed.
	MetricsSecure  bool
	MetricsCertDir string
	// MetricsTokenFile has the token of those who may get /metrics, in place of asking the API server: an operator
	// of one namespace may not ask it.
	MetricsTokenFile string
	// Tracer makes a trace of each rollout; nil makes none.
	Tracer trace.Tracer
	// Capsules records reconciles; nil records none.
	Capsules *capsule.Recorder
	// Ready errors while the process is not ready; nil never does.
	Ready func() error
	// LeaderElection lets only one of several managers write.
	LeaderElection bool
	// LeaderElectionNamespace is where the lease is; "" is the namespace that the
	// process runs in.
	LeaderElectionNamespace string
	// LeaderElectionID is the name of the Lease; "" is DefaultLeaderElectionID.
	LeaderElectionID string
	// Shard is the part of the resources that the process serves, which takes LeaderElection; the zero value is all.
	Shard Shard
	// Concurrency is how many resources of one package are reconciled at once.
	Concurrency int
	// Workers evaluate packages. Without them, New errors unless InProcess says that CUE may run over users' data in this
	// process, where nothing can interrupt or bound an evaluation.
	Workers   *worker.Pool
	InProcess bool
	// ConfigMap holds configuration for packages, each under the key of its name with
	// .yaml; the zero value is none.
	ConfigMap types.NamespacedName
	// Allow are the administrative annotations that a resource may use.
	Allow []string
	// Namespaces restrict the manager to the custom resources in some namespaces; nil is all. One of them that does not
	// exist, or in which the operator lacks a right, stops none of the others.
	Namespaces object.Namespaces
	// Selector restricts the manager to the custom resources with some labels; nil is all.
	Selector labels.Selector
	// WebhookAddress is the address of admission webhooks, by TLS; "" serves none.
	// WebhookCertDir has their certificate, tls.crt and tls.key, which may change. "" makes one, as
	// WebhookCertificates says.
	WebhookAddress      string
	WebhookCertDir      string
	WebhookCertificates WebhookCertificates
	// ReconcileLimit is how long a reconcile may go on without an answer of the API server until /healthz
	// fails; 0 is forever.
	ReconcileLimit time.Duration
	// Templates says whether packages are evaluated by templates.
	Templates evaluate.Templates
	// Accounts are the ServiceAccounts of packages by their names, which send the requests for their resources. Serve
	// knows that of a package by ActAs; this is for those that are not loaded.
	Accounts map[string]object.Account
	// PackageMissing says what happens to deleted resources whose package is missing; "" tears them down.
	PackageMissing PackageMissingPolicy
}

// DefaultLeaderElectionID is the name of the Lease. Two operators in a namespace that serve different
// packages need one each, or one of them stands by forever.
const DefaultLeaderElectionID = "operetta.dev"

// Manager runs one controller for each package. Its methods are safe for concurrent
// use, before Start and while it runs.
type Manager struct {
	manager manager.Manager
	options Options
	// own is the process itself, for its own requests and for packages without a ServiceAccount.
	own            *identity
	identities     *identities
	subsystems     *subsystems
	packageMissing *packageMissingTeardown
	running        *runningReconciles
	refused        *refusedRequests
	history        *history.Log
	// certificates are those of the webhooks, if this process makes them.
	certificates *webhookCertificates

	mu          sync.RWMutex
	controllers map[schema.GroupKind]*packageController
	// prepared is the evaluator of the version that was planned last, until it is served.
	prepared *evaluate.Evaluator
	// pins are the versions that resources of a kind may be pinned to.
	pins map[schema.GroupKind]*pinnedVersions
	// held are the kinds of Packages whose controllers do not begin yet.
	held *heldKinds
	// packageChanged has a Package reconciled again; nil without Packages.
	packageChanged func(name string)
	// accounts are those that send the requests for the resources of a kind.
	accounts map[schema.GroupKind]object.Account
}

// errNoWorkers is the error of a manager that would run CUE over users' data in its own process without being told to.
var errNoWorkers = errors.New("there are no workers: in this process, nothing could interrupt or bound an evaluation")

// New returns a manager that serves no package yet. It errors if it cannot reach the cluster, or listen on
// an address, or has no workers.
func New(config *rest.Config, options Options) (*Manager, error) {
	if options.Workers == nil && !options.InProcess {
		return nil, errNoWorkers
	}
	refused := newRefusedRequests()
	config = clientConfig(config)
	if err := options.Shard.Check(); err != nil {
		return nil, err
	}
	settings, leader, err := withElection(managerOptions(options), noteAnswers(config), options)
	if err != nil {
		return nil, err
	}
	mgr, err := manager.New(refused.wrap(noteAnswers(config), object.Account{}), settings)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	shared := watch.NewShared(mgr.GetConfig())
	m := &Manager{
		manager: mgr, options: options, running: newRunningReconciles(options.ReconcileLimit), refused: refused, history: history.New(history.DefaultLimits, time.Now, shared.History()),
		controllers: map[schema.GroupKind]*packageController{}, pins: map[schema.GroupKind]*pinnedVersions{}, accounts: map[schema.GroupKind]object.Account{}, held: newHeldKinds(),
	}
	m.identities = &identities{manager: m, shared: shared, config: config, by: map[object.Account]*usedIdentity{}}
	m.own = &identity{Connection: mgr, recorder: recorder{mgr.GetEventRecorder(eventsReporter)}}
	if err := m.own.complete(m, m.identities.shared); err != nil {
		return nil, err
	}
	if err := errors.Join(addProbes(mgr, options, m.own.resources, m.running), leader(mgr)); err != nil {
		return nil, err
	}
	if err := m.serveMetrics(); err != nil {
		return nil, err
	}
	if err := m.serveWebhooks(); err != nil {
		return nil, err
	}
	m.subsystems = newSubsystems(m.own.caches.Direct, options.Log, m.Serves)
	m.packageMissing = newPackageMissingTeardown(m)
	refused.allowed, refused.signal = m.ask, m.accountRefused
	if options.Capsules != nil {
		if err := mgr.Add(options.Capsules); err != nil {
			return nil, err
		}
	}
	return m, errors.Join(mgr.Add(refused), mgr.Add(m.packageMissing))
}

// clientConfig returns the client configuration of a manager. Responses are not compressed: near an API server,
// decompressing them costs the manager more than the network does, and compressing them costs the API server even
// more. The controllers of Kubernetes do the same.
func clientConfig(config *rest.Config) *rest.Config {
	out := cluster.WithStatusCodes(config)
	out.DisableCompression = true
	return out
}

// withElection adds the leader election to the settings of a manager, if it has one. The function adds the check of /readyz that says
// whose Lease the process waits for.
func withElection(settings manager.Options, config *rest.Config, o Options) (manager.Options, func(manager.Manager) error, error) {
	if !o.LeaderElection {
		return settings, func(manager.Manager) error { return nil }, nil
	}
	lock, err := newElection(config, o)
	if err != nil {
		return settings, nil, err
	}
	settings.LeaderElectionResourceLockInterface = lock
	return settings, func(mgr manager.Manager) error { return mgr.AddReadyzCheck(leaderCheck, lock.wait.check) }, nil
}

// addProbes adds the checks of /healthz and /readyz.
func addProbes(mgr manager.Manager, o Options, resources *watch.Resources, running *runningReconciles) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("reconciles", running.check); err != nil {
		return err
	}
	synced := func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), probeTime)
		defer cancel()
		return resources.Check(ctx)
	}
	if err := mgr.AddReadyzCheck("caches", synced); err != nil {
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
		HealthProbeBindAddress:        cmp.Or(o.HealthAddress, off),
		LeaderElection:                o.LeaderElection,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(leaseRetry),
		MapperProvider:                cluster.NewRESTMapper,
		GracefulShutdownTimeout:       new(shutdownTimeout),
	}
	_ = clientgoscheme.AddToScheme(out.Scheme) // it never errors; events and leases need it
	return out
}

// off is the address with which controller-runtime serves nothing.
const off = "0"

// Start runs the controllers until the context ends or one of them fails.
func (m *Manager) Start(ctx context.Context) error {
	if m.options.Shard.IsPrimary() {
		if err := m.watchOrphanPatches(); err != nil {
			return err
		}
	}
	return m.manager.Start(ctx)
}

// Elected returns a channel that is closed when the manager may write: when it leads, or at its start
// without leader election.
func (m *Manager) Elected() <-chan struct{} { return m.manager.Elected() }

// PackagesLoaded says that the process has tried to load every package: from now on, the package of a
// kind without a controller is missing.
func (m *Manager) PackagesLoaded() { m.packageMissing.notePackagesLoaded() }

// controller returns the controller of a kind, or nil if its package is not loaded.
func (m *Manager) controller(kind schema.GroupKind) *packageController {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.controllers[kind]
}

// Serves reports whether the package of a kind is loaded.
func (m *Manager) Serves(kind schema.GroupKind) bool { return m.controller(kind) != nil }

// ServedBy returns the package that serves a kind, and where its files are from, or "".
func (m *Manager) ServedBy(kind schema.GroupKind) string {
	if c := m.controller(kind); c != nil {
		return Describe(c.program.Load().Program)
	}
	return ""
}

// Describe returns the name of a package and where its files are from.
func Describe(p *program.Program) string {
	if from := p.Snapshot().Origin(); from != "" {
		return p.Name() + " (" + from + ")"
	}
	return p.Name()
}

// A TakenError says that two packages have the same kind.
type TakenError struct {
	Kind schema.GroupKind
	// By is the package that serves the kind, and Package the one that would like to, as Describe
	// returns them.
	By, Package string
}

// Error names the kind and both packages.
func (e *TakenError) Error() string {
	return fmt.Sprintf("packages %s and %s both serve %s", e.By, e.Package, e.Kind)
}

// claim makes a controller the only one of a kind. It errors with a TakenError if there is another.
func (m *Manager) claim(kind schema.GroupKind, c *packageController, p *program.Program) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.controllers[kind]; other != nil {
		return &TakenError{Kind: kind, By: Describe(other.program.Load().Program), Package: Describe(p)}
	}
	m.controllers[kind] = c
	return nil
}
