package capsule

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/plan"
)

// A Reading is what one reconcile reads and writes. Of each object, the first read counts, because a later one may
// return what the reconcile itself has written.
type Reading struct {
	began time.Time

	mu      sync.Mutex
	objects map[cluster.Ref]*unstructured.Unstructured
	lists   map[string]selected
	scopes  map[schema.GroupKind]cluster.Scope
	owned   []*unstructured.Unstructured
	did     []RecordedWrite
	// evaluated says that the package was evaluated: a reconcile that has found nothing changed decides nothing.
	evaluated bool
}

// selected are the objects of a selection.
type selected struct {
	selection cluster.Selection
	objects   []*unstructured.Unstructured
}

// readingKey is the key of the Reading of a context.
type readingKey struct{}

// readingOf returns the Reading of a context, or nil.
func readingOf(ctx context.Context) *Reading {
	r, _ := ctx.Value(readingKey{}).(*Reading)
	return r
}

// Evaluated notes that a reconcile has evaluated its package, if the context is that of one that is recorded.
func Evaluated(ctx context.Context) {
	if r := readingOf(ctx); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.evaluated = true
	}
}

// decides reports whether the reconcile has decided anything.
func (r *Reading) decides() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.evaluated || len(r.did) > 0
}

// object notes an object that was read, or nil for one that does not exist.
func (r *Reading) object(ref cluster.Ref, u *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.objects[ref.Identity()]; !known {
		r.objects[ref.Identity()] = u
	}
}

// list notes the objects of a selection.
func (r *Reading) list(s cluster.Selection, all []*unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := dryrun.SelectionKey(s)
	if _, known := r.lists[key]; !known {
		r.lists[key] = selected{s, all}
	}
}

// act notes a write.
func (r *Reading) act(w cluster.Write, err error) {
	a := RecordedWrite{Verb: w.Verb, Object: w.Ref.String()}
	if err != nil {
		a.Refused = failure(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, a)
}

// acts returns the writes so far.
func (r *Reading) acts() []RecordedWrite {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]RecordedWrite{}, r.did...)
}

// A recorded cluster notes what is read and written by it in the Reading of the context.
type recorded struct{ cluster.Interceptor }

func newRecorded(c cluster.Cluster) recorded {
	return recorded{cluster.Interceptor{Cluster: c, Intercept: func(ctx context.Context, w cluster.Write, do func(cluster.Cluster) error) error {
		err := do(c)
		if r := readingOf(ctx); r != nil {
			r.act(w, err)
		}
		return err
	}}}
}

var _ cluster.Cluster = recorded{}

// GetCached implements cluster.Cluster.
func (c recorded) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := c.Cluster.GetCached(ctx, ref)
	if r := readingOf(ctx); r != nil && err == nil && !cluster.IsVersionsOnly(ctx) {
		r.object(ref, u)
	}
	return u, err
}

// GetLive implements cluster.Cluster.
func (c recorded) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := c.Cluster.GetLive(ctx, ref)
	if r := readingOf(ctx); r != nil && err == nil {
		r.object(ref, u)
	}
	return u, err
}

// ListCached implements cluster.Cluster.
func (c recorded) ListCached(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	all, err := c.Cluster.ListCached(ctx, s)
	if r := readingOf(ctx); r != nil && err == nil {
		r.list(s, all)
	}
	return all, err
}

// ListLive implements cluster.Cluster.
func (c recorded) ListLive(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	all, err := c.Cluster.ListLive(ctx, s)
	if r := readingOf(ctx); r != nil && err == nil {
		r.list(s, all)
	}
	return all, err
}

// Owned implements cluster.Cluster.
func (c recorded) Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	all, err := c.Cluster.Owned(ctx, namespace, label, value)
	if r := readingOf(ctx); r != nil && err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.owned = append(r.owned, all...)
	}
	return all, err
}

// Scope implements cluster.Cluster.
func (c recorded) Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	scope, err := c.Cluster.Scope(ctx, kind)
	if r := readingOf(ctx); r != nil && (err == nil || cluster.IsKindNotServed(err)) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.scopes[kind.GroupKind()] = scope
	}
	return scope, err
}

// dump returns what was read, for a resource of a package. It is nil if the resource does not exist.
func (r *Reading) dump(pkg string, resource cluster.Ref) *plan.Dump {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.objects[resource.Identity()]
	if u == nil {
		return nil
	}
	d := plan.NewDump(pkg, resource.GroupVersionKind, r.began)
	d.ObserveResources(whole(u))
	for kind, scope := range r.scopes {
		d.ObserveScope(kind, scope)
	}
	for ref, u := range r.objects {
		if ref != resource.Identity() {
			r.observe(d, ref, u)
		}
	}
	for _, l := range r.lists {
		var all []*unstructured.Unstructured
		for _, u := range l.objects {
			all = append(all, whole(u))
		}
		d.ObserveList(l.selection, all)
	}
	for _, u := range r.owned {
		if ref := cluster.RefOf(u); r.objects[ref.Identity()] == nil {
			r.observe(d, ref, u)
		}
	}
	return d
}

// observe notes an object that was read in a dump, with what that says: where its kind lives, and that
// its namespace exists.
func (r *Reading) observe(d *plan.Dump, ref cluster.Ref, u *unstructured.Unstructured) {
	d.Observe(ref, whole(u))
	if _, known := r.scopes[ref.GroupKind()]; !known && u != nil {
		scope := cluster.Namespaced
		if ref.Namespace == "" {
			scope = cluster.ClusterScoped
		}
		d.ObserveScope(ref.GroupKind(), scope)
	}
	namespace := cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: ref.Namespace}
	if _, known := r.objects[namespace.Identity()]; known || ref.Namespace == "" {
		return
	}
	exists := &unstructured.Unstructured{}
	exists.SetGroupVersionKind(namespace.GroupVersionKind)
	exists.SetName(ref.Namespace)
	d.Observe(namespace, exists)
}

// whole returns an object with its managed fields as an API server has them: those of a cache are in another form. It
// returns nil for nil.
func whole(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	fields := ownership.ManagedFields(u)
	out := u.DeepCopy()
	out.SetManagedFields(fields)
	return out
}
