package dryrun

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/verify"
)

// A Source has the objects of a cluster as they are. It is never written, and it is asked once for
// each object and each selection.
type Source interface {
	// Get returns an object, or nil if it does not exist.
	Get(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error)
	// List returns the objects of a selection.
	List(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error)
	// Owned returns what cluster.Cluster.Owned returns.
	Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error)
	// Scope returns the scope of a kind. It errors with a KindNotServedError if there is none.
	Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error)
}

// ReadThrough lets the operators read the objects of a cluster as it is at a time, and write them in
// memory. An object counts as healthy if it is, or if a resource of the world owns it: then its
// simulated controller finishes what it is doing. Objects of others stay as they are. Writes do not fail as planned.
//
// With assumeNamespaces, the namespaces of objects count as existing without being read: an operator has objects in them, and needs no
// other right there.
func (w *World) ReadThrough(from Source, at time.Time, assumeNamespaces bool) {
	w.mirror = &mirror{world: w, from: from, assumesNamespaces: assumeNamespaces, have: map[cluster.Ref]bool{}, listed: map[string]bool{}}
	w.clock.now = at
	for i := range w.operators {
		w.mirror.connect(w.operators[i].Reconciler)
	}
}

// Swap lets another version of a package, with its own evaluator, reconcile the resources of its kind from now on.
// The new version remembers nothing of what the previous one did.
func (w *World) Swap(p *program.Program, by reconcile.Package) {
	kind := p.GroupVersionKind().GroupKind()
	for i := range w.operators {
		if w.operators[i].Kind.GroupKind() == kind {
			w.operators[i] = newOperator(p, &w.clock, w.reconciler(w.operators[i].ConfigMap))
			w.operators[i].evaluates = by
		}
	}
}

// A mirror copies objects from a source into a world when they are first read there.
type mirror struct {
	world *World
	from  Source

	// assumesNamespaces says that the namespaces of objects are not read.
	assumesNamespaces bool

	mu sync.Mutex
	// have are the objects that were copied, or do not exist in the source.
	have map[cluster.Ref]bool
	// listed are the selections that were copied.
	listed map[string]bool
	// before are the events of the world that were taken from its watch while objects were copied.
	before []cluster.ObjectChange
}

// connect makes a reconciler read by the mirror.
func (m *mirror) connect(r *reconcile.Reconciler) {
	on := mirrored{knownKinds{m.world.Cluster}, m}
	r.Cluster, r.Patches = on, on
}

// next returns the changes of the world since the last call, without those that only copied objects.
func (w *World) next() []cluster.ObjectChange {
	if w.mirror == nil {
		return w.watch.Next()
	}
	w.mirror.mu.Lock()
	defer w.mirror.mu.Unlock()
	out := slices.Concat(w.mirror.before, w.watch.Next())
	w.mirror.before = nil
	return out
}

// get copies one object and its namespace.
func (m *mirror) get(ctx context.Context, ref cluster.Ref) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ref.Namespace != "" {
		if err := m.getNamespace(ctx, ref.Namespace); err != nil {
			return err
		}
	}
	return m.getOne(ctx, ref)
}

// getNamespace copies a namespace, or takes it that it exists.
func (m *mirror) getNamespace(ctx context.Context, name string) error {
	ref := cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: name}
	if m.assumesNamespaces {
		m.world.Cluster.RequireNamespaces(name)
		return nil
	}
	err := m.getOne(ctx, ref)
	if apierrors.IsForbidden(err) { // whoever may read objects in it knows that it exists
		m.have[ref.Identity()] = true
		m.world.Cluster.RequireNamespaces(name)
		return nil
	}
	return err
}

// getOne copies one object.
func (m *mirror) getOne(ctx context.Context, ref cluster.Ref) error {
	if m.have[ref.Identity()] {
		return nil
	}
	u, err := m.from.Get(ctx, ref)
	if cluster.IsKindNotServed(err) {
		return nil // the world may serve it all the same, once it is defined there
	}
	if err == nil {
		m.have[ref.Identity()] = true
	}
	if err != nil || u == nil {
		return err
	}
	return m.copy(u)
}

// list copies the objects of a selection.
func (m *mirror) list(ctx context.Context, s cluster.Selection) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := SelectionKey(s)
	if m.listed[key] || m.world.Serves(s.Kind.GroupKind()) {
		return nil // the world has the resources of its packages that it is about
	}
	all, err := m.from.List(ctx, s)
	if cluster.IsKindNotServed(err) {
		return nil
	}
	if err != nil {
		return err
	}
	m.listed[key] = true
	for _, u := range all {
		if id := cluster.RefOf(u).Identity(); !m.have[id] {
			m.have[id] = true
			if err := m.copy(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// copy puts an object into the world as it is in the source, which does not count as a change. It drops the
// finalizers of others, because no controller would remove them after a deletion.
func (m *mirror) copy(u *unstructured.Unstructured) error {
	u = u.DeepCopy()
	if u.GetDeletionTimestamp() == nil {
		u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(f string) bool { return f != cluster.TeardownFinalizer }))
	}
	for _, o := range u.GetOwnerReferences() {
		m.world.Cluster.AssumeExists(o.UID)
	}
	m.before = append(m.before, m.world.watch.Next()...)
	_, err := m.world.Put(u)
	m.world.watch.Next()
	m.world.settled = false
	return err
}

// SelectionKey returns a text that is the same for selections that select the same.
func SelectionKey(s cluster.Selection) string {
	parts := []string{s.Kind.GroupKind().String(), s.Namespace, s.Name}
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		parts = append(parts, k+"="+s.Labels[k])
	}
	return strings.Join(parts, "|")
}

// mirrored is the cluster of operators whose world has a mirror.
type mirrored struct {
	knownKinds

	mirror *mirror
}

// Scope implements cluster.Cluster.
func (m mirrored) Scope(ctx context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	scope, err := m.knownKinds.Scope(ctx, kind)
	if !cluster.IsKindNotServed(err) {
		return scope, err
	}
	if scope, err = m.mirror.from.Scope(ctx, kind); err == nil {
		m.Serve(kind.GroupKind(), scope)
	}
	return scope, err
}

// GetCached implements cluster.Cluster.
func (m mirrored) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	return m.GetLive(ctx, ref)
}

// GetLive implements cluster.Cluster.
func (m mirrored) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if _, err := m.Scope(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	if err := m.mirror.get(ctx, ref); err != nil {
		return nil, err
	}
	return m.knownKinds.GetLive(ctx, ref)
}

// ListCached implements cluster.Cluster.
func (m mirrored) ListCached(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	return m.ListLive(ctx, s)
}

// ListLive implements cluster.Cluster.
func (m mirrored) ListLive(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	if err := m.mirror.list(ctx, s); err != nil {
		return nil, err
	}
	return m.knownKinds.ListLive(ctx, s)
}

// Owned implements cluster.Cluster.
func (m mirrored) Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	return m.mirror.from.Owned(ctx, namespace, label, value)
}

// atRest reports whether a simulated controller leaves an object alone that was copied: it is healthy, or
// nobody of the world has made it.
func (w *World) atRest(u *unstructured.Unstructured) bool {
	if w.mirror == nil {
		return false
	}
	return u.GetLabels()[ownership.OwnerLabel] == "" || verify.Object(u, "ready").Health == verify.Ready
}

// keepStatus returns a status with the fields of the one before that it does not have: a controller that has
// finished does not forget what it has reported.
func (w *World) keepStatus(before, after any) any {
	old, isMap := before.(map[string]any)
	next, isNext := after.(map[string]any)
	if w.mirror == nil || !isMap || !isNext {
		return after
	}
	out := maps.Clone(old)
	maps.Copy(out, next)
	return out
}
