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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// children are the objects that packages own, as all controllers of a manager read
// them. A manager of one namespace reads those of that namespace, and each other one
// from the time that an object of a package is there: it need not be allowed to read
// them all.
type children struct {
	manager manager.Manager
	// namespace is the one that near is restricted to; "" is none.
	namespace string
	// near is also where cluster-scoped objects are.
	near space
	// direct is a client without a cache.
	direct client.Client
	// schemas and creations are shared by all controllers.
	schemas   cluster.Schemas
	creations *cluster.Creations
	// endings are those of the objects that pass a cache, and wholes the large ones, of which
	// a cache has next to nothing.
	endings *endings
	wholes  *wholes
	log     logr.Logger

	mu  sync.Mutex
	far map[string]space
}

// A space is a cache of what packages own, and a client that reads from it.
type space struct {
	cache    cache.Cache
	troubles *troubles
	client   client.Client
}

func newChildren(mgr manager.Manager, namespace string, remembered *wholes, log logr.Logger) (*children, error) {
	c := &children{
		manager: mgr, namespace: namespace, far: map[string]space{}, endings: newEndings(), wholes: remembered, log: log,
		schemas: cluster.PublishedSchemas(mgr.GetConfig()), creations: cluster.NewCreations(),
	}
	var err error
	if c.near, err = c.open(namespace); err != nil {
		return nil, err
	}
	c.direct, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("creating the client: %w", err)
	}
	return c, nil
}

// open returns the space of a namespace, or of all. Its cache holds only what the
// engine has written, by its label: the memory does not grow with what else is there.
func (c *children) open(namespace string) (space, error) {
	ours, err := labels.Parse(ownership.OwnerLabel)
	if err != nil {
		return space{}, err
	}
	options := cacheOptions(c.manager)
	options.DefaultLabelSelector = ours
	options.DefaultNamespaces = only(namespace)
	options.DefaultTransform = guarded(c.log, func(object any) (any, error) {
		kept, err := stripObject(object)
		if err != nil {
			return nil, err
		}
		return c.endings.note(kept)
	})
	out := space{troubles: &troubles{}}
	options.DefaultWatchErrorHandler = out.troubles.handle
	if out.cache, err = cache.New(c.manager.GetConfig(), options); err != nil {
		return space{}, fmt.Errorf("creating the cache: %w", err)
	}
	if out.client, err = cachedClient(c.manager, out.cache); err != nil {
		return space{}, err
	}
	return out, c.manager.Add(out.cache)
}

// in returns where the objects of a namespace are read.
func (c *children) in(ctx context.Context, namespace string) (space, error) {
	if c.namespace == "" || namespace == "" || namespace == c.namespace {
		return c.near, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, known := c.far[namespace]; known {
		return s, nil
	}
	s, err := c.open(namespace)
	if err != nil {
		return space{}, fmt.Errorf("namespace %s: %w", namespace, err)
	}
	c.far[namespace] = s
	s.cache.WaitForCacheSync(ctx) // it has no kinds yet, and only has to begin
	return s, nil
}

// spread is the cluster of one controller. What is read from a cache is read from
// that of its namespace.
type spread struct {
	*cluster.Live // the near one

	children   *children
	owner      ownerKind
	controller controller.Controller
	own        echoes

	mu    sync.Mutex
	parts map[cache.Cache]*cluster.Live
}

var _ cluster.Cluster = (*spread)(nil)

func newSpread(kids *children, owner ownerKind, c controller.Controller) *spread {
	s := &spread{children: kids, owner: owner, controller: c, parts: map[cache.Cache]*cluster.Live{}}
	s.Live = s.part(kids.near)
	return s
}

// part returns the cluster of a space.
func (s *spread) part(of space) *cluster.Live {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[of.cache] == nil {
		w := newWatches(s.owner, of, &s.own, s.controller)
		s.parts[of.cache] = &cluster.Live{
			Client: of.client, Direct: s.children.direct, Kinds: cluster.Kinds(s.children.manager.GetConfig()), Namespace: s.children.namespace, Watch: w.ensure,
			Schemas: s.children.schemas, Creations: s.children.creations,
		}
	}
	return s.parts[of.cache]
}

func (s *spread) at(ctx context.Context, namespace string) (*cluster.Live, error) {
	of, err := s.children.in(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return s.part(of), nil
}

// GetCached implements cluster.Cluster.
func (s *spread) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	live, err := s.at(ctx, ref.Namespace)
	if err != nil {
		return nil, err
	}
	u, err := live.GetCached(ctx, ref)
	if err != nil {
		return nil, err
	}
	return s.children.wholes.get(ctx, u, live.GetLive)
}

// Apply implements cluster.Cluster.
func (s *spread) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := s.at(ctx, object.GetNamespace())
	if err != nil {
		return nil, err
	}
	out, err := live.Apply(ctx, object)
	if err == nil {
		s.children.wholes.note(out)
	}
	return out, err
}

// HandOver implements cluster.Cluster.
func (s *spread) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	live, err := s.at(ctx, fields.GetNamespace())
	if err != nil {
		return err
	}
	return live.HandOver(ctx, fields)
}

// Delete implements cluster.Cluster.
func (s *spread) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	live, err := s.at(ctx, ref.Namespace)
	if err != nil {
		return err
	}
	return live.Delete(ctx, ref, uid)
}
