package controller

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// objectCaches are the objects that packages own, as all controllers of a manager read
// them. A manager of one namespace reads those of that namespace, and each other one
// from the time that an object of a package is there: it need not be allowed to read
// them all.
type objectCaches struct {
	manager manager.Manager
	// namespace is the one that primary is restricted to; "" is none.
	namespace string
	// primary also holds cluster-scoped objects.
	primary objectCache
	// direct is a client without a cache.
	direct client.Client
	// schemas and creations are shared by all controllers.
	schemas   cluster.Schemas
	creations *cluster.Creations
	// finished are those of the objects that pass a cache, and large the large ones, of which
	// a cache has next to nothing.
	finished *finishedObjects
	large    *largeObjects
	log      logr.Logger

	mu           sync.Mutex
	perNamespace map[string]objectCache
}

// An objectCache is a cache of owned objects, and a client that reads from it.
type objectCache struct {
	cache  cache.Cache
	errors *watchErrors
	client client.Client
}

func newObjectCaches(mgr manager.Manager, namespace string, large *largeObjects, log logr.Logger) (*objectCaches, error) {
	c := &objectCaches{
		manager: mgr, namespace: namespace, perNamespace: map[string]objectCache{}, finished: newFinishedObjects(), large: large, log: log,
		schemas: cluster.PublishedSchemas(mgr.GetConfig()), creations: cluster.NewCreations(),
	}
	var err error
	if c.primary, err = c.open(namespace); err != nil {
		return nil, err
	}
	c.direct, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("creating the client: %w", err)
	}
	return c, nil
}

// open returns the cache of a namespace, or of all. It selects objects with the owner label,
// so that its memory does not grow with other objects of the cluster.
func (c *objectCaches) open(namespace string) (objectCache, error) {
	ours, err := labels.Parse(ownership.OwnerLabel)
	if err != nil {
		return objectCache{}, err
	}
	options := cacheOptions(c.manager)
	options.DefaultLabelSelector = ours
	options.DefaultNamespaces = only(namespace)
	options.DefaultTransform = guarded(c.log, func(object any) (any, error) {
		kept, err := stripObject(object)
		if err != nil {
			return nil, err
		}
		return c.finished.note(kept)
	})
	out := objectCache{errors: &watchErrors{}}
	options.DefaultWatchErrorHandler = out.errors.handle
	if out.cache, err = cache.New(c.manager.GetConfig(), options); err != nil {
		return objectCache{}, fmt.Errorf("creating the cache: %w", err)
	}
	if out.client, err = cachedClient(c.manager, out.cache); err != nil {
		return objectCache{}, err
	}
	return out, c.manager.Add(out.cache)
}

// in returns the cache of the objects of a namespace, which it creates if there is none.
func (c *objectCaches) in(ctx context.Context, namespace string) (objectCache, error) {
	if c.namespace == "" || namespace == "" || namespace == c.namespace {
		return c.primary, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, known := c.perNamespace[namespace]; known {
		return s, nil
	}
	s, err := c.open(namespace)
	if err != nil {
		return objectCache{}, fmt.Errorf("namespace %s: %w", namespace, err)
	}
	c.perNamespace[namespace] = s
	s.cache.WaitForCacheSync(ctx) // it has no kinds yet, so it only waits for the start
	return s, nil
}

// A namespacedCluster is the cluster of one controller. It reads each object from the cache
// of the object's namespace.
type namespacedCluster struct {
	*cluster.Live // of the primary cache

	caches     *objectCaches
	owner      ownerKind
	controller controller.Controller
	inputs     *inputs // nil without a package, which reads none

	mu    sync.Mutex
	parts map[cache.Cache]*cluster.Live
}

var _ cluster.Cluster = (*namespacedCluster)(nil)

func newNamespacedCluster(kids *objectCaches, owner ownerKind, c controller.Controller) *namespacedCluster {
	s := &namespacedCluster{caches: kids, owner: owner, controller: c, parts: map[cache.Cache]*cluster.Live{}}
	s.Live = s.part(kids.primary)
	return s
}

// part returns the cluster that reads from a cache.
func (s *namespacedCluster) part(of objectCache) *cluster.Live {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[of.cache] == nil {
		w := newWatches(s.owner, of, s.controller)
		s.parts[of.cache] = &cluster.Live{
			Client: of.client, Direct: s.caches.direct, Kinds: cluster.Kinds(s.caches.manager.GetConfig()), Namespace: s.caches.namespace, Watch: w.ensure,
			Schemas: s.caches.schemas, Creations: s.caches.creations, ReadFull: s.caches.large.get,
		}
	}
	return s.parts[of.cache]
}

func (s *namespacedCluster) at(ctx context.Context, namespace string) (*cluster.Live, error) {
	of, err := s.caches.in(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return s.part(of), nil
}

// GetCached implements cluster.Cluster.
func (s *namespacedCluster) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	live, err := s.at(ctx, ref.Namespace)
	if err != nil {
		return nil, err
	}
	return live.GetCached(ctx, ref)
}

// ListCached implements cluster.Cluster: it lists inputs, which it watches for the resource
// that the context is of.
func (s *namespacedCluster) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	req, _ := ctx.Value(requestKey{}).(ctrl.Request)
	return s.inputs.list(ctx, req.NamespacedName, which)
}

// Apply implements cluster.Cluster.
func (s *namespacedCluster) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := s.at(ctx, object.GetNamespace())
	if err != nil {
		return nil, err
	}
	out, err := live.Apply(ctx, object)
	if err == nil {
		s.caches.large.note(out)
	}
	return out, err
}

// HandOver implements cluster.Cluster.
func (s *namespacedCluster) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	live, err := s.at(ctx, fields.GetNamespace())
	if err != nil {
		return err
	}
	return live.HandOver(ctx, fields)
}

// Delete implements cluster.Cluster.
func (s *namespacedCluster) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	live, err := s.at(ctx, ref.Namespace)
	if err != nil {
		return err
	}
	return live.Delete(ctx, ref, uid)
}
