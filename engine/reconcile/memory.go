package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
)

// MemoryStore keeps the custom resources of a kind in a cluster in memory, beside
// their objects.
type MemoryStore struct {
	Kind    schema.GroupVersionKind
	Cluster *memory.Cluster
}

var _ Store = (*MemoryStore)(nil)

// Get implements Store.
func (s *MemoryStore) Get(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return s.Cluster.GetLive(ctx, cluster.Ref{GroupVersionKind: s.Kind, Namespace: key.Namespace, Name: key.Name})
}

// ApplyStatus implements Store.
func (s *MemoryStore) ApplyStatus(_ context.Context, resource *unstructured.Unstructured) error {
	s.Cluster.ApplyStatus(resource)
	return nil
}

// ApplyFinalizers implements Store.
func (s *MemoryStore) ApplyFinalizers(_ context.Context, resource *unstructured.Unstructured) error {
	s.Cluster.ApplyFinalizers(resource, finalizerPrefix)
	return nil
}
