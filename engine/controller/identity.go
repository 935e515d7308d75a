package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/object"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// An identity is a user that sends the requests for the resources of packages: the process itself, or a
// ServiceAccount that it impersonates. Each has caches of its own, because a cache asks for no rights when it is read: one
// that was filled by one user must not serve what runs as another.
type identity struct {
	watch.Connection

	account object.Account
	// resources has the custom resources, and caches the objects of packages.
	resources *watch.Resources
	caches    *watch.Caches
	patches   *watch.Patches
	recorder  reconcile.Recorder
	// dryRuns returns the cluster of the dry runs of webhooks.
	dryRuns func() (dryrun.ServerOptions, error)
}

// identities are those of the accounts that packages use at present, beside that of the process.
type identities struct {
	manager *Manager
	// shared is what every identity shares.
	shared watch.Shared
	// config is that of the process, without what is wrapped around it.
	config *rest.Config

	mu sync.Mutex
	by map[object.Account]*usedIdentity
}

// A usedIdentity is the identity of an account as long as something uses it.
type usedIdentity struct {
	*identity

	users      int
	connection *impersonation
}

// identityOf returns the identity of an account, and a function that ends its use; "" is the process itself.
func (m *Manager) identityOf(account object.Account) (*identity, func(), error) {
	if account == (object.Account{}) {
		return m.own, func() {}, nil
	}
	all := m.identities
	all.mu.Lock()
	defer all.mu.Unlock()
	used := all.by[account]
	if used == nil {
		var err error
		if used, err = all.open(account); err != nil {
			return nil, nil, fmt.Errorf("acting as ServiceAccount %s: %w", account, err)
		}
		all.by[account] = used
	}
	used.users++
	return used.identity, sync.OnceFunc(func() { all.leave(account, used) }), nil
}

// leave ends one use of an identity. With the last use, everything that runs as the identity ends: its watches would
// otherwise continue with rights that somebody may have meant to revoke.
func (all *identities) leave(account object.Account, used *usedIdentity) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if used.users--; used.users > 0 {
		return
	}
	delete(all.by, account)
	used.connection.end()
}

// errImpersonatesAlready says that the connection of the operator already impersonates a user, and so cannot impersonate another.
var errImpersonatesAlready = errors.New("the operator's own connection already impersonates a user, and Kubernetes does not support nested impersonation")

// open returns the identity of an account.
func (all *identities) open(account object.Account) (*usedIdentity, error) {
	config, err := Impersonating(all.config, account)
	if err != nil {
		return nil, err
	}
	m := all.manager
	config = m.refused.wrap(noteAnswers(config), account)
	connection, err := newImpersonation(m.manager, config)
	if err != nil {
		return nil, err
	}
	recorder, err := connection.events(m.options.Log)
	if err != nil {
		return nil, err
	}
	out := &identity{Connection: connection, account: account, recorder: recorder}
	if err := out.complete(m, all.shared); err != nil {
		connection.end()
		return nil, err
	}
	return &usedIdentity{identity: out, connection: connection}, nil
}

// Impersonating returns a configuration whose clients act as an account; none leaves it as it is. It errors if the account is
// invalid, or if the configuration acts as somebody else already.
func Impersonating(config *rest.Config, account object.Account) (*rest.Config, error) {
	if account == (object.Account{}) {
		return config, nil
	}
	if err := account.Check(); err != nil {
		return nil, err
	}
	if config.Impersonate.UserName != "" {
		return nil, errImpersonatesAlready
	}
	out := rest.CopyConfig(config)
	out.Impersonate = rest.ImpersonationConfig{UserName: account.User()}
	return out, nil
}

// complete opens the caches of an identity.
func (i *identity) complete(m *Manager, shared watch.Shared) error {
	var err error
	if i.resources, err = watch.NewResources(i, m.options.Namespaces, resourceCache(m.options)); err != nil {
		return err
	}
	if err := i.Add(watch.EveryProcess(i.resources.Start)); err != nil {
		return err
	}
	if i.caches, err = watch.NewCaches(i, m.options.Namespaces, shared, m.options.Log); err != nil {
		return err
	}
	i.dryRuns = sync.OnceValues(func() (dryrun.ServerOptions, error) { return serverDryRunOptions(i.GetConfig(), m.options) })
	i.patches, err = watch.NewPatches(i, i.caches.Direct, m.options.Namespaces, m.options.Log)
	return err
}

// resourceCache returns the options of a cache that has nothing but custom resources, so that the selector is theirs.
func resourceCache(o Options) cache.Options {
	return cache.Options{DefaultLabelSelector: o.Selector, SyncPeriod: new(watch.Resync), DefaultTransform: watch.TransformResource(o.Log)}
}

// An impersonation is the connection of an account. What runs over it ends with it. Discovery is that of the process: the
// account needs no right for it, and it says nothing that depends on rights.
type impersonation struct {
	manager manager.Manager
	config  *rest.Config
	client  *http.Client

	mu    sync.Mutex
	parts []*stoppable
}

var _ watch.Connection = (*impersonation)(nil)

func newImpersonation(mgr manager.Manager, config *rest.Config) (*impersonation, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &impersonation{manager: mgr, config: config, client: client}, nil
}

// GetConfig implements watch.Connection.
func (i *impersonation) GetConfig() *rest.Config { return i.config }

// GetHTTPClient implements watch.Connection.
func (i *impersonation) GetHTTPClient() *http.Client { return i.client }

// GetScheme implements watch.Connection.
func (i *impersonation) GetScheme() *runtime.Scheme { return i.manager.GetScheme() }

// GetRESTMapper implements watch.Connection.
func (i *impersonation) GetRESTMapper() meta.RESTMapper { return i.manager.GetRESTMapper() }

// GetLogger implements watch.Connection.
func (i *impersonation) GetLogger() logr.Logger { return i.manager.GetLogger() }

// Add implements watch.Connection. As the caches of the process, it runs also while another process leads.
func (i *impersonation) Add(part manager.Runnable) error {
	stops := &stoppable{runnable: part, done: make(chan struct{})}
	i.mu.Lock()
	i.parts = append(i.parts, stops)
	i.mu.Unlock()
	return i.manager.Add(watch.EveryProcess(stops.Start))
}

// end ends all parts, and does not wait for them.
func (i *impersonation) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, part := range i.parts {
		_ = part.stop(ended) // it errors because nobody waits
	}
	i.client.CloseIdleConnections()
}

// events returns a recorder whose events are written by the account.
func (i *impersonation) events(log logr.Logger) (reconcile.Recorder, error) {
	client, err := kubernetes.NewForConfigAndClient(i.config, i.client)
	if err != nil {
		return nil, err
	}
	all := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	err = i.Add(manager.RunnableFunc(func(ctx context.Context) error {
		defer all.Shutdown()
		if err := all.StartRecordingToSinkWithContext(logr.NewContext(ctx, log)); err != nil {
			return fmt.Errorf("recording events: %w", err)
		}
		<-ctx.Done()
		return nil
	}))
	return recorder{all.NewRecorder(i.GetScheme(), eventsReporter)}, err
}
