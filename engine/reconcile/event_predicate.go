package reconcile

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/status"
)

// SpecOrMetadataChanged reports whether a change of a custom resource is one that a rollout can
// depend on. Those of its status are not, which are the engine's own, but for one.
func SpecOrMetadataChanged(before, after *unstructured.Unstructured) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetUID() != after.GetUID() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		lostInventory(before, after) ||
		disputed(before, after) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// lostInventory reports whether somebody took the inventory away, as a restored backup
// does, or a person whom the engine has asked to. The engine itself never does.
func lostInventory(before, after *unstructured.Unstructured) bool {
	return hasInventory(before) && !hasInventory(after)
}

// disputed reports whether another process has begun to say, or to ask whether, nobody
// serves the resource. Whoever does serve it says otherwise.
func disputed(before, after *unstructured.Unstructured) bool {
	return status.Disputed(statusOf(after)) && !status.Disputed(statusOf(before))
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
