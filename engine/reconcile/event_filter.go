package reconcile

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/status"
)

// SpecOrMetadataChanged reports whether a change of a custom resource may change what a rollout does.
// Changes of its status do not, because the engine makes them itself, except for two that only
// others make, and of its finalizers only the removal of the engine's. The generation does not tell
// everything: an API server whose definition has lost a field drops that from a resource at the next
// write, which may be one of the status, and counts no generation.
func SpecOrMetadataChanged(before, after *unstructured.Unstructured) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetUID() != after.GetUID() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		lostInventory(before, after) ||
		becameNotServed(before, after) ||
		lostFinalizer(before, after) ||
		!reflect.DeepEqual(before.Object["spec"], after.Object["spec"]) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// lostInventory reports whether the inventory was removed, as a restored backup does, or a
// person because the status told them to. The engine never removes it.
func lostInventory(before, after *unstructured.Unstructured) bool {
	return hasInventory(before) && !hasInventory(after)
}

// lostFinalizer reports whether the finalizer was removed from a resource that is not being deleted, as a client that replaces it
// without finalizers does. If the resource was deleted then, the objects that only a teardown deletes would stay, and no
// hook would run before. The engine removes the finalizer only from a resource that is being deleted.
func lostFinalizer(before, after *unstructured.Unstructured) bool {
	return slices.Contains(before.GetFinalizers(), Finalizer) && !slices.Contains(after.GetFinalizers(), Finalizer)
}

// becameNotServed reports whether another process has begun to say, or to ask whether, no process serves
// the resource. The process that serves it has to answer.
func becameNotServed(before, after *unstructured.Unstructured) bool {
	return status.SaysNotServed(statusOf(after)) && !status.SaysNotServed(statusOf(before))
}

func statusOf(u *unstructured.Unstructured) map[string]any {
	s, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status")
	out, _ := s.(map[string]any)
	return out
}

func hasInventory(u *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "inventory")
	return found
}
