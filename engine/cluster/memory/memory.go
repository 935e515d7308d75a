// Package memory is a cluster without a server, for dry runs and tests: it keeps objects as an
// API server does, and nothing in it happens by itself. It is no fake client: what it answers
// is held against an API server by the tests of package cluster.
//
//	c := memory.New()
//	_, err := c.Apply(ctx, object)
//	for _, change := range c.Changes() { ... }
package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"operetta.dev/engine/cluster"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Cluster is a cluster.Cluster without a server: apply with field ownership, generations,
// deletion with finalizers and preconditions, and a watch. It is what dry runs and
// tests roll packages out in. The tests of this package and of the rollout run on it
// and on an API server, and so say what it can.
//
// It sets no defaults, and takes the status of every kind for a subresource. It validates
// next to nothing until Validate is called, and needs no namespaces until Namespaces says
// which there are; dry runs do both. Nothing happens in it by itself: a
// Deployment has no status until somebody writes one with Put, and what belongs to
// an object that is gone stays until CollectGarbage is called. It serves Kubernetes'
// own kinds, and others that Serve declares.
type Cluster struct {
	mu      sync.Mutex
	objects map[cluster.Ref]*unstructured.Unstructured
	belongs ownerIndex
	served  map[schema.GroupKind]cluster.Scope
	events  []cluster.Event
	version int64
	fields  *fieldManagers
	refuse  Admission
	// judge says what is wrong with an object.
	judge judge
	// namespaces exist without an object; nil is all.
	namespaces map[string]bool
}

var _ cluster.Cluster = (*Cluster)(nil)

// A Admission refuses writes as admission does: it is given what is there and what
// is to be, either of which may be nil.
type Admission func(before, after *unstructured.Unstructured) error

// Refuse makes the cluster refuse writes; nil refuses none.
func (m *Cluster) Refuse(r Admission) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = r
}

// New returns an empty cluster.
func New() *Cluster {
	return &Cluster{
		objects: map[cluster.Ref]*unstructured.Unstructured{},
		belongs: newBelongings(),
		served:  map[schema.GroupKind]cluster.Scope{},
		fields:  newFieldManagers(),
		judge:   lenient{},
	}
}

// Serve makes the cluster know a kind, as a CustomResourceDefinition does.
func (m *Cluster) Serve(kind schema.GroupKind, scope cluster.Scope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served[kind] = scope
}

// Validate makes the cluster refuse what an API server finds wrong with an object by
// itself: fields that its kind does not have, values of another type, names, what is
// required, what must not change. Custom resources are known by their metadata alone.
func (m *Cluster) Validate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.judge = strict{types: m.fields.known}
}

// Namespaces makes the cluster refuse what is created in a namespace that it does not
// have, and have some from the start; another call adds to those.
func (m *Cluster) Namespaces(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.namespaces == nil {
		m.namespaces = map[string]bool{}
	}
	for _, name := range names {
		m.namespaces[name] = true
	}
}

// Withdraw makes the cluster forget a kind that Serve has declared, with its objects.
func (m *Cluster) Withdraw(kind schema.GroupKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.served, kind)
	for _, u := range m.sorted() {
		if u.GroupVersionKind().GroupKind() == kind {
			m.keep(cluster.Deleted, u, u.DeepCopy())
		}
	}
}

// Refs returns the identities of all objects, sorted.
func (m *Cluster) Refs() []cluster.Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return sortedRefs(m.objects)
}

// sortedRefs returns the identities that a map has, sorted.
func sortedRefs[V any](of map[cluster.Ref]V) []cluster.Ref {
	return slices.SortedFunc(maps.Keys(of), func(a, b cluster.Ref) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// Objects returns all objects, sorted as their identities are.
func (m *Cluster) Objects() []*unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.sorted()
	for i, u := range out {
		out[i] = u.DeepCopy()
	}
	return out
}

// sorted returns all objects as they are kept.
func (m *Cluster) sorted() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, ref := range sortedRefs(m.objects) {
		out = append(out, m.objects[ref])
	}
	return out
}

// Scope implements Cluster.
func (m *Cluster) Scope(_ context.Context, kind schema.GroupVersionKind) (cluster.Scope, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scope(kind)
}

func (m *Cluster) scope(kind schema.GroupVersionKind) (cluster.Scope, error) {
	if scope, ok := m.served[kind.GroupKind()]; ok {
		return scope, nil
	}
	if scope, ok := builtin(kind); ok {
		return scope, nil
	}
	return "", &cluster.KindNotServedError{Kind: kind}
}

// GetCached implements Cluster.
func (m *Cluster) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	return m.GetLive(ctx, ref)
}

// GetLive implements Cluster.
func (m *Cluster) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if _, err := m.Scope(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.objects[ref.Identity()]; u != nil {
		return u.DeepCopy(), nil
	}
	return nil, nil
}

// Owned implements Cluster.
func (m *Cluster) Owned(_ context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, u := range m.sorted() {
		if u.GetLabels()[label] == value && (namespace == "" || namespace == u.GetNamespace()) {
			found := &unstructured.Unstructured{Object: map[string]any{"metadata": u.DeepCopy().Object["metadata"]}}
			found.SetGroupVersionKind(u.GroupVersionKind())
			out = append(out, found)
		}
	}
	return out, nil
}

// ListCached implements Cluster.
func (m *Cluster) ListCached(ctx context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	return m.ListLive(ctx, s)
}

// ListLive implements Cluster.
func (m *Cluster) ListLive(_ context.Context, s cluster.Selection) ([]*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, u := range m.sorted() {
		switch {
		case u.GroupVersionKind().GroupKind() != s.Kind.GroupKind(), s.Namespace != "" && u.GetNamespace() != s.Namespace, s.Name != "" && u.GetName() != s.Name:
		case s.Limit > 0 && int64(len(out)) >= s.Limit:
		case labels.SelectorFromSet(s.Labels).Matches(labels.Set(u.GetLabels())):
			out = append(out, u.DeepCopy())
		}
	}
	return out, nil
}
