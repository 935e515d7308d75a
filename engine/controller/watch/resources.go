package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Resources are the custom resources of some namespaces, for all controllers that act as one user. Each namespace has a
// cache and a client of its own. The library's cache of several namespaces has synced once all of them have, so that
// one that cannot be listed would stop the others; and its client takes what it sees of one namespace as a proof
// that it has seen everything before that in the others, which have watches of their own.
//
// Start runs the caches. They need no leader election: a process that stands by has them ready.
type Resources struct {
	namespaces object.Namespaces
	parts      map[string]Cache

	mu sync.Mutex
	// sources are those of the kinds that controllers serve, each of one namespace of several; none if all resources are in one place.
	sources map[schema.GroupVersionKind][]*resourceSource
}

// NewResources returns the custom resources of some namespaces, as a connection reads them. The caller starts them, or
// adds them to the connection.
func NewResources(mgr Connection, namespaces object.Namespaces, options cache.Options) (*Resources, error) {
	out := &Resources{namespaces: namespaces, parts: map[string]Cache{}, sources: map[schema.GroupVersionKind][]*resourceSource{}}
	for _, namespace := range namespaces.Lists() {
		part, err := NewCache(mgr, namespace, options)
		if err != nil {
			return nil, err
		}
		out.parts[namespace] = part
	}
	return out, nil
}

// Start implements manager.Runnable.
func (r *Resources) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range r.parts {
		group.Go(func() error { return part.Start(ctx) })
	}
	return group.Wait()
}

// A notSyncedError says that the caches may lack resources of a kind that exist, so that the engine must not decide by them.
type notSyncedError struct {
	kind schema.GroupKind
	// cause is why the kind cannot be listed, or nil if that is not known.
	cause error
}

// Error names the kind, and what the API server says about it.
func (e *notSyncedError) Error() string {
	text := e.kind.String() + ": the caches are not synced yet"
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *notSyncedError) Unwrap() error { return e.cause }

// Check errors while a kind that a controller serves has not been listed. Of several namespaces, one is enough, if the others cannot be
// listed. It waits for the lists until the context ends.
func (r *Resources) Check(ctx context.Context) error {
	var err error
	_ = wait.PollUntilContextCancel(ctx, syncPoll, true, func(context.Context) (bool, error) {
		err = r.check()
		return err == nil, nil
	})
	return err
}

// check is Check without waiting.
func (r *Resources) check() error {
	r.mu.Lock()
	sources := maps.Clone(r.sources)
	r.mu.Unlock()
	home := r.parts[r.namespaces.Lists()[0]]
	for kind, of := range sources {
		waits := isAny(of, waitingForList) || isAny(of, cannotBeListed) && !isAny(of, listed)
		if len(of) == 0 { // its resources are all in one place
			waits = home.waitsFor(kind)
		}
		if !waits {
			continue
		}
		err := &notSyncedError{kind.GroupKind(), home.errors.last(kind)}
		for _, s := range of {
			if err.cause == nil {
				err.cause = s.errors.last(kind)
			}
		}
		return err
	}
	return nil
}

// waitsFor reports whether the cache watches a kind that has not been listed. A kind that the API server does not serve has no
// resources.
func (c Cache) waitsFor(kind schema.GroupVersionKind) bool {
	informer, err := c.GetInformer(context.Background(), NewObject(kind), cache.BlockUntilSynced(false))
	return err == nil && !informer.HasSynced()
}

// awaitLists waits until each of several namespaces has been listed, or cannot be.
func (r *Resources) awaitLists(ctx context.Context, kind schema.GroupVersionKind) error {
	return wait.PollUntilContextCancel(ctx, syncPoll, true, func(context.Context) (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		of := r.sources[kind]
		return !isAny(of, notStarted) && !isAny(of, waitingForList), nil
	})
}

// isAny reports whether the first list of a source is that far.
func isAny(of []*resourceSource, state listState) bool {
	return slices.ContainsFunc(of, func(s *resourceSource) bool { return s.is(state) })
}

// Of returns the resources of a kind. Those of a cluster-scoped one are in no namespace, whatever is served.
func (r *Resources) Of(kind schema.GroupVersionKind, scope cluster.Scope) *KindResources {
	out := &KindResources{from: r, kind: kind, places: r.namespaces.Lists()}
	if scope == cluster.ClusterScoped {
		out.places = out.places[:1]
	}
	return out
}

// KindResources are the custom resources of one kind.
type KindResources struct {
	from *Resources
	kind schema.GroupVersionKind
	// places are the namespaces whose caches have them.
	places []string
}

// in returns the cache that has the resources of a namespace, and whether there is one.
func (k *KindResources) in(namespace string) (Cache, bool) {
	if len(k.places) == 1 && (k.places[0] == "" || namespace == "") {
		return k.from.parts[k.places[0]], true
	}
	part, served := k.from.parts[namespace]
	return part, served
}

// WatchedIn returns the namespace that the watch is restricted to that sees the resources of a namespace; "" is none.
func (k *KindResources) WatchedIn(namespace string) string {
	if len(k.places) == 1 {
		return k.places[0]
	}
	return namespace
}

// Refused returns the namespaces in which the operator may not list or watch the resources at present, so that their resources are not seen; "" is all.
func (k *KindResources) Refused() []string {
	var out []string
	for _, place := range k.places {
		if k.from.parts[place].errors.isRefused(k.kind) {
			out = append(out, place)
		}
	}
	return out
}

// Gone reports whether the API server has said that there is no such kind, and has not let it be read since. It knows that once the
// watch ends, which the API server does when the definition is deleted.
func (k *KindResources) Gone() bool {
	return slices.ContainsFunc(k.places, func(place string) bool { return k.from.parts[place].errors.isGone(k.kind) })
}

// UID returns the UID of a resource. It returns "" for an unknown resource, and for every one until its cache has synced.
func (k *KindResources) UID(key types.NamespacedName) types.UID {
	if u := k.Get(key); u != nil {
		return u.GetUID()
	}
	return ""
}

// Get returns a resource as its cache has it, or nil. It waits for nothing.
func (k *KindResources) Get(key types.NamespacedName) *unstructured.Unstructured {
	from, served := k.in(key.Namespace)
	if !served || !k.synced(from) {
		return nil
	}
	u := NewObject(k.kind)
	if err := from.Get(context.Background(), key, u, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return u
}

// synced reports whether a cache has the kind.
func (k *KindResources) synced(in Cache) bool {
	informer, err := in.GetInformer(context.Background(), NewObject(k.kind), cache.BlockUntilSynced(false))
	return err == nil && informer.HasSynced()
}

// Warm begins to list and watch the resources, for a process that may stand by for long: it need not wait for that when it becomes the leader.
// What cannot be watched yet is tried again when the controller starts.
func (k *KindResources) Warm() {
	for _, place := range k.places {
		_ = k.synced(k.from.parts[place])
	}
}

// List returns all resources that the caches have, by namespace and name. Of several namespaces it leaves out those that
// have not been listed: the watch of one enqueues its resources as soon as it can. It errors if they may not be listed, or have not been
// within SyncTimeout: a kind that cannot be listed must not keep the callers that ask for it from everything else.
func (k *KindResources) List(ctx context.Context, options ...client.ListOption) ([]*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, SyncTimeout)
	defer cancel()
	if err := k.from.awaitLists(ctx, k.kind); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, place := range k.places {
		from := k.from.parts[place]
		if len(k.places) > 1 && !k.synced(from) {
			continue
		}
		if err := k.await(ctx, from); err != nil {
			return nil, err
		}
		found, err := cluster.List(ctx, from.Client, cluster.Selection{Kind: k.kind}, options...)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetNamespace(), b.GetNamespace()) })
	return out, nil
}

// await waits until a cache has the kind. It errors with a cluster.KindUnreadableError if the API server says that it may not be listed.
func (k *KindResources) await(ctx context.Context, in Cache) error {
	informer, err := in.GetInformer(ctx, NewObject(k.kind), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %s: %w", k.kind.Kind, err)
	}
	return wait.PollUntilContextCancel(ctx, syncPoll, true, func(context.Context) (bool, error) {
		if informer.HasSynced() {
			return true, nil
		}
		if cause := in.errors.last(k.kind); apierrors.IsForbidden(cause) {
			return false, &cluster.KindUnreadableError{Kind: k.kind, Cause: cause}
		}
		return false, nil
	})
}

// Cluster returns the cluster of the resources, which reads each from its cache and writes it with the client of that.
// The caches of objects say how a part of a large one is completed.
func (k *KindResources) Cluster(of *Caches) cluster.Cluster {
	all := &routed{by: map[string]cluster.Cluster{}}
	for _, place := range k.places {
		all.by[place] = &cluster.Live{Client: k.from.parts[place].Client, Direct: of.Direct, ReadFull: of.readFull}
	}
	first := all.by[k.places[0]]
	if len(k.places) == 1 {
		return first
	}
	all.Interceptor = cluster.Interceptor{Cluster: first, Intercept: all.write}
	return all
}

// routed is a cluster of several namespaces, each of which has a client of its own.
type routed struct {
	cluster.Interceptor // what needs no cache is read by the first

	by map[string]cluster.Cluster
}

// in returns the cluster of a namespace. It errors if that is not served: nothing is read there, and nothing written.
func (r *routed) in(namespace string) (cluster.Cluster, error) {
	if of := r.by[namespace]; of != nil {
		return of, nil
	}
	return nil, fmt.Errorf("the operator does not serve the namespace %q", namespace)
}

// GetCached implements cluster.Cluster.
func (r *routed) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	of, err := r.in(ref.Namespace)
	if err != nil {
		return nil, err
	}
	return of.GetCached(ctx, ref)
}

// ListCached implements cluster.Cluster.
func (r *routed) ListCached(ctx context.Context, which cluster.Selection) ([]*unstructured.Unstructured, error) {
	of, err := r.in(which.Namespace)
	if err != nil {
		return nil, err
	}
	return of.ListCached(ctx, which)
}

// write carries a write out on the cluster of the namespace.
func (r *routed) write(_ context.Context, w cluster.Write, do func(cluster.Cluster) error) error {
	of, err := r.in(w.Ref.Namespace)
	if err != nil {
		return err
	}
	return do(of)
}
