package watch

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// maxOther is how many kinds a controller watches that its package has not rendered, and in how many
// namespaces where it has rendered nothing. They come from inventories, which are a part of statuses: a
// forged one could list all kinds that the cluster has, and any namespaces, and each watch costs memory
// forever.
const maxOther = 32

// limited are the kinds, or namespaces, that a controller watches.
type limited[K comparable] struct {
	// rendered are those that the package has rendered, and other those that are watched besides.
	rendered, other map[K]bool
}

func newLimited[K comparable]() limited[K] { return limited[K]{map[K]bool{}, map[K]bool{}} }

// noteRendered notes that the package has rendered one, which is always watched from then on.
func (l limited[K]) noteRendered(key K) {
	l.rendered[key] = true
	delete(l.other, key)
}

// allows reports whether one may be watched. If the package has not rendered it, it counts.
func (l limited[K]) allows(key K) bool {
	if !l.rendered[key] && len(l.other) < maxOther {
		l.other[key] = true
	}
	return l.rendered[key] || l.other[key]
}

// A Cluster is the cluster of one controller. It reads each object from the cache of the object's
// namespace.
type Cluster struct {
	*cluster.Live // of the primary cache

	caches     *Caches
	owner      OwnerKind
	controller controller.Controller
	inputs     *Inputs // nil without a package, which reads none

	mu    sync.Mutex
	parts map[cache.Cache]*cluster.Live
	// watches are those of the parts.
	watches map[cache.Cache]*objectWatches
	kinds   limited[schema.GroupKind]
	// namespaces are those that have a cache of their own.
	namespaces limited[string]
	// unwatched are the resources with an object beyond maxOther.
	unwatched map[ctrl.Request]bool
	warned    bool
}

var _ cluster.Cluster = (*Cluster)(nil)

// Cluster returns the cluster of a controller whose resources own objects, and read inputs; nil is
// none.
func (c *Caches) Cluster(owner OwnerKind, ctrlr controller.Controller, inputs *Inputs) *Cluster {
	out := c.cluster(owner, ctrlr, inputs)
	out.Live = out.part(c.primary, c.primaryNamespace())
	return out
}

func (c *Caches) cluster(owner OwnerKind, ctrlr controller.Controller, inputs *Inputs) *Cluster {
	return &Cluster{
		caches: c, owner: owner, controller: ctrlr, inputs: inputs, parts: map[cache.Cache]*cluster.Live{}, watches: map[cache.Cache]*objectWatches{},
		kinds: newLimited[schema.GroupKind](), namespaces: newLimited[string](), unwatched: map[ctrl.Request]bool{},
	}
}

// part returns the cluster that reads from a cache of one namespace, or of all for "".
func (c *Cluster) part(of Cache, namespace string) *cluster.Live {
	c.mu.Lock()
	defer c.mu.Unlock()
	if shared := c.caches.shared; c.parts[of.Cache] == nil {
		c.parts[of.Cache] = &cluster.Live{
			Client: of.Client, Direct: c.caches.Direct, Kinds: cluster.Kinds(c.caches.connection.GetConfig()), RecentKinds: shared.recentKinds, Namespaces: c.caches.namespaces,
			Watch: c.objectWatchesIn(of, namespace).ensure, Schemas: shared.schemas, Creations: shared.creations, ReadFull: c.caches.readFull,
			Lists: shared.owned, User: c.caches.connection.GetConfig().Impersonate.UserName,
		}
	}
	return c.parts[of.Cache]
}

func (c *Cluster) in(ctx context.Context, namespace string) (*cluster.Live, error) {
	of, err := c.caches.in(ctx, namespace)
	if err != nil {
		return nil, err
	}
	_, scope, _ := c.caches.known(namespace)
	return c.part(of, scope), nil
}

// NoteRendered notes the kinds and namespaces of the objects of an evaluation. These are always watched.
func (c *Cluster) NoteRendered(r program.Rollout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	note := func(component program.Component) {
		for _, o := range component.Objects {
			c.kinds.noteRendered(o.Identity.GroupKind())
			c.namespaces.noteRendered(o.Identity.Namespace)
		}
	}
	for _, component := range r.Components {
		note(component)
	}
	for _, hook := range r.Hooks {
		note(hook.Component)
	}
}

// mayWatch reports whether an object is watched, with all of its kind and namespace, rather than read
// live.
func (c *Cluster) mayWatch(ctx context.Context, ref cluster.Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds.allows(ref.GroupKind()) && (c.caches.serves(ref.Namespace) || c.namespaces.allows(ref.Namespace)) {
		return true
	}
	c.unwatched[RequestFrom(ctx)] = true
	if !c.warned {
		c.warned = true
		c.caches.log.Info("inventories list objects of too many kinds or namespaces that the package does not render: further ones are not watched, and are read live",
			"owner", c.owner.GroupKind.String(), "limit", maxOther, "object", ref.String(), "resource", RequestFrom(ctx).String())
	}
	return false
}

// Requeue returns when a resource is reconciled again that asks for that after some time, 0 for never.
// It is soon if the last reconcile has read an object that is not watched.
func (c *Cluster) Requeue(req ctrl.Request, after time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.unwatched[req] {
		return after
	}
	delete(c.unwatched, req)
	if after == 0 {
		return unwatchedInterval
	}
	return min(after, unwatchedInterval)
}

// GetCached implements cluster.Cluster. It reads an object live if its kind or namespace is beyond the
// limit of watches, in which kinds that are not served have no part.
func (c *Cluster) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if _, err := c.Scope(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	if !c.mayWatch(ctx, ref) {
		return c.GetLive(ctx, ref)
	}
	live, err := c.in(ctx, ref.Namespace)
	if err != nil {
		return nil, err
	}
	return live.GetCached(ctx, ref)
}

// ListCached implements cluster.Cluster: it lists inputs, and watches them for the resource of the
// context.
func (c *Cluster) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	return c.inputs.List(ctx, RequestFrom(ctx).NamespacedName, which)
}

// Apply implements cluster.Cluster.
func (c *Cluster) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := c.in(ctx, object.GetNamespace())
	if err != nil {
		return nil, err
	}
	out, err := live.Apply(ctx, object)
	if err == nil {
		c.caches.large.note(out)
		ownership.CompactManagedFields(out) // as those of a cache are: the rollout asks several times who owns what
	}
	return out, err
}

// HandOver implements cluster.Cluster.
func (c *Cluster) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	live, err := c.in(ctx, fields.GetNamespace())
	if err != nil {
		return err
	}
	return live.HandOver(ctx, fields)
}

// Delete implements cluster.Cluster.
func (c *Cluster) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	live, err := c.in(ctx, ref.Namespace)
	if err != nil {
		return err
	}
	return live.Delete(ctx, ref, uid)
}
