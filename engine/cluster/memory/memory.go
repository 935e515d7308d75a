// Package memory is a cluster without a server, for dry runs and tests: it stores objects as an
// API server does, and no controllers run. It is no fake client: the tests of package cluster
// compare its behaviour with an API server.
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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"operetta.dev/engine/cluster"
)

// Cluster is a cluster.Cluster without a server. It has server-side apply with field ownership,
// generations, deletion with finalizers and preconditions, and a watch. The tests of packages
// cluster and rollout run on it and on an API server, which shows what it can do.
//
// It sets no defaults, and the status of every kind is a subresource. It validates little until
// EnableValidation is called, and requires no namespaces until RequireNamespaces is called; dry runs do both. No
// controllers run: a Deployment has no status until somebody writes one with Put, and dependents of
// a deleted object stay until CollectGarbage is called. It serves the built-in kinds, and others
// that Serve adds.
type Cluster struct {
	mu      sync.Mutex
	objects map[cluster.Ref]*unstructured.Unstructured
	owners  ownerIndex
	served  map[schema.GroupKind]cluster.Scope
	events  []cluster.ObjectChange
	version int64
	// unstored counts the creations by dry runs.
	unstored int64
	fields   *fieldManagers
	refuse   Admission
	// validates says that EnableValidation was called.
	validates bool
	// namespaces exist without an object; nil stands for all.
	namespaces map[string]bool
}

var _ cluster.Cluster = (*Cluster)(nil)

// An Admission errors to reject a write, as an admission webhook does. It gets the object before and
// after the write; before is nil on creation, and after on deletion.
type Admission func(before, after *unstructured.Unstructured) error

// SetAdmission sets the Admission; nil rejects nothing.
func (m *Cluster) SetAdmission(r Admission) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = r
}

// New returns an empty cluster.
func New() *Cluster {
	return &Cluster{
		objects: map[cluster.Ref]*unstructured.Unstructured{},
		owners:  newOwnerIndex(),
		served:  map[schema.GroupKind]cluster.Scope{},
		fields:  newFieldManagers(),
	}
}

// Serve makes the cluster serve a kind, as a CustomResourceDefinition does.
func (m *Cluster) Serve(kind schema.GroupKind, scope cluster.Scope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served[kind] = scope
}

// EnableValidation makes the cluster reject objects as the validation of an API server does: unknown fields,
// values of another type, names, required fields, immutable fields. Of custom resources it
// validates only the metadata.
func (m *Cluster) EnableValidation() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.validates = true
}

// RequireNamespaces makes the cluster reject objects in a namespace that does not exist, and adds namespaces
// that do.
func (m *Cluster) RequireNamespaces(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.namespaces == nil {
		m.namespaces = map[string]bool{}
	}
	for _, name := range names {
		m.namespaces[name] = true
	}
}

// StopServing stops serving a kind that Serve has added, and deletes its objects.
func (m *Cluster) StopServing(kind schema.GroupKind) {
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

// sorted returns all objects, not copied.
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

// ServedVersion implements Cluster. A kind that Serve has added is served in every version.
func (m *Cluster) ServedVersion(_ context.Context, kind schema.GroupKind) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.served[kind]; ok {
		return "v1", nil
	}
	for _, of := range scheme.Scheme.VersionsForGroupKind(kind) {
		if _, ok := builtin(of.WithKind(kind.Kind)); ok {
			return of.Version, nil
		}
	}
	return "", nil
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
	for _, ref := range sortedRefs(m.candidates(s)) {
		switch u := m.objects[ref]; {
		case s.Limit > 0 && int64(len(out)) >= s.Limit:
		case labels.SelectorFromSet(s.Labels).Matches(labels.Set(u.GetLabels())):
			found := u.DeepCopy()
			if s.OnlyMetadata {
				maps.DeleteFunc(found.Object, func(field string, _ any) bool { return !slices.Contains(metadataFields, field) })
			}
			out = append(out, found)
		}
	}
	return out, nil
}

// candidates are the objects with the kind, the namespace and the name of a selection. There may be hundreds of selections,
// each with a name.
func (m *Cluster) candidates(s cluster.Selection) map[cluster.Ref]bool {
	out := map[cluster.Ref]bool{}
	if s.Name != "" && s.Namespace != "" {
		ref := cluster.Ref{GroupVersionKind: s.Kind, Namespace: s.Namespace, Name: s.Name}.Identity()
		if m.objects[ref] != nil {
			out[ref] = true
		}
		return out
	}
	for ref := range m.objects {
		if ref.GroupKind() == s.Kind.GroupKind() && (s.Namespace == "" || ref.Namespace == s.Namespace) && (s.Name == "" || ref.Name == s.Name) {
			out[ref] = true
		}
	}
	return out
}

// metadataFields are the fields that a list of metadata has.
var metadataFields = []string{"apiVersion", "kind", "metadata"}
