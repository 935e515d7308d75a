package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dropFinalizer takes the engine's finalizer away from a resource, and nothing else.
//
// Applying no finalizers would take the whole list away, with those that nobody owns.
// The API server adds such ones itself: without its "orphan", the garbage collector
// deletes what was to be left behind.
func (s *store) dropFinalizer(ctx context.Context, resource *unstructured.Unstructured) error {
	live, err := s.Get(ctx, client.ObjectKeyFromObject(resource))
	if err != nil || live == nil {
		return err
	}
	i := slices.Index(live.GetFinalizers(), reconcile.Finalizer)
	if i < 0 || live.GetUID() != resource.GetUID() {
		return nil
	}
	at := fmt.Sprintf("/metadata/finalizers/%d", i)
	// The tests refuse a resource that is not the one that was read.
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": live.GetUID()},
		{"op": "test", "path": at, "value": reconcile.Finalizer},
		{"op": "remove", "path": at},
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(s.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(cluster.FieldManager)))
}
