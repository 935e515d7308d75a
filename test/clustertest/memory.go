package clustertest

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/ownership"
)

// inMemory is the backend of a cluster in memory.
type inMemory struct {
	*memory.Cluster

	watch *memory.Watch
}

// GetCached implements cluster.Cluster. Like the operator's cache, it returns only objects with the
// owner label, and their managedFields as text.
func (m *inMemory) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	u, err := m.Cluster.GetCached(ctx, ref)
	if u != nil && u.GetLabels()[ownership.OwnerLabel] == "" {
		return nil, err
	}
	if u != nil {
		ownership.CompactManagedFields(u)
	}
	return u, err
}

// Delete implements cluster.Cluster, and runs the garbage collector.
func (m *inMemory) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	defer m.CollectGarbage()
	return m.Cluster.Delete(ctx, ref, uid)
}

func (m *inMemory) put(_ context.Context, manager string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	defer m.CollectGarbage()
	return m.Put(manager, object)
}

func (m *inMemory) remove(_ context.Context, object *unstructured.Unstructured) error {
	defer m.CollectGarbage()
	return m.DeleteInBackground(cluster.RefOf(object), object.GetUID())
}

func (m *inMemory) list(_ context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, u := range m.Objects() {
		if u.GroupVersionKind() == kind {
			out = append(out, u)
		}
	}
	return out, nil
}

func (m *inMemory) serve(_ context.Context, kind schema.GroupVersionKind) error {
	m.Serve(kind.GroupKind(), cluster.Namespaced)
	return nil
}

func (m *inMemory) withdraw(_ context.Context, kind schema.GroupVersionKind) error {
	m.StopServing(kind.GroupKind())
	return nil
}

func (m *inMemory) refuse(r memory.Admission) { m.SetAdmission(r) }

func (m *inMemory) events(context.Context) ([]cluster.ObjectChange, error) {
	return m.watch.Next(), nil
}

func (m *inMemory) terminate(context.Context) error {
	ns, err := m.Put("person", object(namespaceKind, "", "default"))
	if err != nil {
		return err
	}
	ns.SetFinalizers([]string{"kubernetes"})
	if ns, err = m.Put("person", ns); err != nil {
		return err
	}
	return m.DeleteInBackground(cluster.RefOf(ns), ns.GetUID())
}
