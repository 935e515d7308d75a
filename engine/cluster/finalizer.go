package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyFinalizers implements Cluster. An apply with a UID never creates.
func (l *Live) ApplyFinalizers(ctx context.Context, object *unstructured.Unstructured) error {
	if len(object.GetFinalizers()) == 0 {
		return l.removeFinalizer(ctx, object)
	}
	return l.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(finalizerManager), client.ForceOwnership)
}

// removeFinalizer removes the engine's finalizer from an object, and nothing else.
//
// An apply without finalizers would remove the whole list, including finalizers without a field
// manager. The API server adds such finalizers itself: without its "orphan", the garbage collector
// would delete dependents that were to be orphaned.
func (l *Live) removeFinalizer(ctx context.Context, object *unstructured.Unstructured) error {
	live, err := l.GetCached(ctx, RefOf(object))
	if err != nil || live == nil {
		return err
	}
	i := slices.Index(live.GetFinalizers(), TeardownFinalizer)
	if i < 0 || live.GetUID() != object.GetUID() {
		return nil
	}
	at := fmt.Sprintf("/metadata/finalizers/%d", i)
	// The tests make the patch fail if the resource is no longer the one that was read.
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": live.GetUID()},
		{"op": "test", "path": at, "value": TeardownFinalizer},
		{"op": "remove", "path": at},
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(l.Client.Patch(ctx, RefOf(live).Object(""), client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager)))
}
