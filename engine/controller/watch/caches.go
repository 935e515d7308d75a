package watch

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A Connection is how caches reach an API server: it sends their requests as one user, and runs the caches. A manager
// is one. A cache serves only the controllers of its own user, because a read from a cache is not authorized.
type Connection interface {
	// GetConfig returns which user sends requests, and how.
	GetConfig() *rest.Config
	// GetHTTPClient returns the client that sends them.
	GetHTTPClient() *http.Client
	// GetScheme returns the types of kinds.
	GetScheme() *runtime.Scheme
	// GetRESTMapper returns which kinds are served.
	GetRESTMapper() meta.RESTMapper
	// GetLogger returns who is told of watches that fail.
	GetLogger() logr.Logger
	// Add runs a part, as a manager does.
	Add(part manager.Runnable) error
}

// A Cache is a cache, a client that reads from it, and the errors of its watches.
type Cache struct {
	cache.Cache

	Client client.Client
	errors *watchErrors
}

// NewCache returns a cache of one namespace, or of all for "", that asks over a connection. The
// caller starts its Cache, or adds that to the connection as EveryProcess.
func NewCache(mgr Connection, namespace string, options cache.Options) (Cache, error) {
	return newCache(mgr, namespace, options, whole)
}

func newCache(mgr Connection, namespace string, options cache.Options, decode decoder) (Cache, error) {
	out := Cache{errors: &watchErrors{}}
	options.HTTPClient, options.Scheme, options.Mapper = mgr.GetHTTPClient(), mgr.GetScheme(), mgr.GetRESTMapper()
	options.DefaultWatchErrorHandler = out.errors.handle
	options.NewInformer = newPatientInformer(mgr.GetLogger(), newStreams(mgr.GetConfig(), namespace, options, decode), out.errors.note, out.errors.may)
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	var err error
	if out.Cache, err = cache.New(mgr.GetConfig(), options); err != nil {
		return Cache{}, fmt.Errorf("creating the cache: %w", err)
	}
	out.Client, err = cluster.ConsistentClient(mgr.GetConfig(), client.Options{
		HTTPClient: options.HTTPClient, Scheme: options.Scheme, Mapper: options.Mapper,
		Cache: &client.CacheOptions{Reader: out.Cache},
	})
	if err != nil {
		return Cache{}, fmt.Errorf("creating the client: %w", err)
	}
	return out, nil
}

// Caches has the objects that packages own, for all controllers that act as one user. A manager of some
// namespaces has a cache for each from the time that an object of a package is there, and so it has for other
// namespaces: it need not be allowed to list all of them, and one that it may not list stops no other.
type Caches struct {
	// Direct reads from and writes to the API server itself.
	Direct client.Client

	connection Connection
	// namespaces are those that are served.
	namespaces object.Namespaces
	// primary has the objects of the first of them, or of all, and cluster-scoped objects.
	primary  Cache
	shared   Shared
	finished *finishedObjects
	large    *largeObjects
	log      logr.Logger

	mu           sync.Mutex
	perNamespace map[string]Cache
}

// Shared is what all controllers of a process share, whichever user they act as. Only unpacked has what objects hold, and
// a caller that asks it for an object has that packed.
type Shared struct {
	schemas   cluster.Schemas
	creations *cluster.Creations
	owned     *cluster.OwnedLists
	// recentKinds lists the kinds that were served some seconds ago. Discovery says nothing that depends on rights.
	recentKinds func(context.Context) ([]schema.GroupVersionKind, error)
	unpacked    *unpackedObjects
}

// NewShared returns what the caches of a process share.
func NewShared(config *rest.Config) Shared {
	return Shared{
		schemas: cluster.PublishedSchemas(config), creations: cluster.NewCreations(), owned: cluster.NewOwnedLists(ownership.OwnerLabel),
		recentKinds: cluster.RecentKinds(cluster.Kinds(config)), unpacked: newUnpackedObjects(),
	}
}

// NewCaches returns the caches of a connection of some namespaces. They run when the connection runs them.
func NewCaches(mgr Connection, namespaces object.Namespaces, shared Shared, log logr.Logger) (*Caches, error) {
	c := &Caches{
		connection: mgr, namespaces: namespaces, perNamespace: map[string]Cache{}, finished: newFinishedObjects(), large: newLargeObjects(), log: log,
		shared: shared,
	}
	var err error
	if c.primary, err = c.open(c.primaryNamespace()); err != nil {
		return nil, err
	}
	c.Direct, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("creating the client: %w", err)
	}
	return c, nil
}

// open returns the cache of a namespace, or of all for "". It selects objects with the owner label,
// so that its memory does not grow with other objects of the cluster.
func (c *Caches) open(namespace string) (Cache, error) {
	ours, err := labels.Parse(ownership.OwnerLabel)
	if err != nil {
		return Cache{}, err
	}
	out, err := newCache(c.connection, namespace, cache.Options{
		DefaultLabelSelector: ours,
		DefaultTransform:     guarded(c.log, c.transform),
	}, packedOrWhole)
	if err != nil {
		return Cache{}, err
	}
	return out, c.connection.Add(EveryProcess(out.Start))
}

// EveryProcess also runs while another process leads, so that this process is ready to take over. The library's cache of
// one namespace does not declare that.
type EveryProcess func(context.Context) error

// Start implements manager.Runnable.
func (f EveryProcess) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (EveryProcess) NeedLeaderElection() bool { return false }

// primaryNamespace is the namespace that primary is restricted to; "" is none.
func (c *Caches) primaryNamespace() string { return c.namespaces.Lists()[0] }

// serves reports whether the objects of a namespace may be cached because its resources are served.
func (c *Caches) serves(namespace string) bool { return namespace == "" || c.namespaces.Has(namespace) }

// transform returns what a cache of owned objects keeps of one.
func (c *Caches) transform(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok && isPacked(u) {
		return u, nil // it was read so, or a resync repeats what the cache has
	}
	kept, err := stripObject(object)
	u, ok := kept.(*unstructured.Unstructured)
	if err != nil || !ok {
		return kept, err
	}
	return c.finished.note(u), nil
}

// readFull returns all of an object of a cache, which may have it packed or stripped.
func (c *Caches) readFull(ctx context.Context, cached *unstructured.Unstructured, read func(context.Context, cluster.Ref) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if cached != nil && isPacked(cached) {
		return c.shared.unpacked.get(cached)
	}
	return c.large.readFull(ctx, cached, read)
}

// primaryHas reports whether the primary cache has the objects of a namespace.
func (c *Caches) primaryHas(namespace string) bool {
	return c.primaryNamespace() == "" || namespace == "" || namespace == c.primaryNamespace()
}

// in returns the cache of the objects of a namespace, which it creates if there is none.
func (c *Caches) in(ctx context.Context, namespace string) (Cache, error) {
	if c.primaryHas(namespace) {
		return c.primary, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.perNamespace[namespace]; ok {
		return known, nil
	}
	out, err := c.open(namespace)
	if err != nil {
		return Cache{}, fmt.Errorf("namespace %s: %w", namespace, err)
	}
	c.perNamespace[namespace] = out
	out.WaitForCacheSync(ctx) // it has no kinds yet, so this waits only until it has started
	return out, nil
}

// Finished returns the last state of an object that has run to its end, such as a Job, or nil. The
// object may be gone.
func (c *Caches) Finished(ref cluster.Ref) *unstructured.Unstructured { return c.finished.get(ref) }

// Resources returns the cluster of Packages that a client reads from a cache, which keeps a part of the large
// ones: see TransformResource.
func (c *Caches) Resources(from client.Client) *cluster.Live {
	return &cluster.Live{Client: from, Direct: c.Direct, ReadFull: c.readFull}
}

// NewObject returns an empty object of a kind.
func NewObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}
