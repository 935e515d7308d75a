package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Memory is a Cluster without a server: apply with field ownership, generations,
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
type Memory struct {
	mu      sync.Mutex
	objects map[Ref]*unstructured.Unstructured
	belongs belongings
	served  map[schema.GroupKind]Scope
	events  []Event
	version int64
	fields  *fieldManagers
	refuse  Refusal
	// judge says what is wrong with an object.
	judge judge
	// namespaces exist without an object; nil is all.
	namespaces map[string]bool
}

var _ Cluster = (*Memory)(nil)

// A Refusal refuses writes as admission does: it is given what is there and what
// is to be, either of which may be nil.
type Refusal func(before, after *unstructured.Unstructured) error

// Refuse makes the cluster refuse writes; nil refuses none.
func (m *Memory) Refuse(r Refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = r
}

// NewMemory returns an empty cluster.
func NewMemory() *Memory {
	return &Memory{
		objects: map[Ref]*unstructured.Unstructured{},
		belongs: newBelongings(),
		served:  map[schema.GroupKind]Scope{},
		fields:  newFieldManagers(),
		judge:   lenient{},
	}
}

// Serve makes the cluster know a kind, as a CustomResourceDefinition does.
func (m *Memory) Serve(kind schema.GroupKind, scope Scope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served[kind] = scope
}

// Validate makes the cluster refuse what an API server finds wrong with an object by
// itself: fields that its kind does not have, values of another type, names, what is
// required, what must not change. Custom resources are known by their metadata alone.
func (m *Memory) Validate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.judge = strict{types: m.fields.known}
}

// Namespaces makes the cluster refuse what is created in a namespace that it does not
// have, and have some from the start; another call adds to those.
func (m *Memory) Namespaces(names ...string) {
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
func (m *Memory) Withdraw(kind schema.GroupKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.served, kind)
	for _, u := range m.sorted() {
		if u.GroupVersionKind().GroupKind() == kind {
			m.keep(Deleted, u, u.DeepCopy())
		}
	}
}

// Refs returns the identities of all objects, sorted.
func (m *Memory) Refs() []Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return sortedRefs(m.objects)
}

// sortedRefs returns the identities that a map has, sorted.
func sortedRefs[V any](of map[Ref]V) []Ref {
	return slices.SortedFunc(maps.Keys(of), func(a, b Ref) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// Objects returns all objects, sorted as their identities are.
func (m *Memory) Objects() []*unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.sorted()
	for i, u := range out {
		out[i] = u.DeepCopy()
	}
	return out
}

// sorted returns all objects as they are kept.
func (m *Memory) sorted() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, ref := range sortedRefs(m.objects) {
		out = append(out, m.objects[ref])
	}
	return out
}

// Scope implements Cluster.
func (m *Memory) Scope(_ context.Context, kind schema.GroupVersionKind) (Scope, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scope(kind)
}

func (m *Memory) scope(kind schema.GroupVersionKind) (Scope, error) {
	if scope, ok := m.served[kind.GroupKind()]; ok {
		return scope, nil
	}
	if scope, ok := builtin(kind); ok {
		return scope, nil
	}
	return "", &KindNotServedError{Kind: kind}
}

// Get implements Cluster.
func (m *Memory) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	return m.Read(ctx, ref)
}

// Read implements Cluster.
func (m *Memory) Read(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
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
func (m *Memory) Owned(_ context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error) {
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

// Select returns the objects of a kind and namespace that have some labels, sorted
// by name.
func (m *Memory) Select(kind schema.GroupVersionKind, namespace string, selector map[string]string) []*unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, u := range m.sorted() {
		if u.GroupVersionKind().GroupKind() != kind.GroupKind() || u.GetNamespace() != namespace {
			continue
		}
		if labels.SelectorFromSet(selector).Matches(labels.Set(u.GetLabels())) {
			out = append(out, u.DeepCopy())
		}
	}
	return out
}
