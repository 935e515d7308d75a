package lifecycle

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Meaningful reports whether a change of a custom resource is one that a rollout can
// depend on. Those of its status are not, which are the engine's own, but for one.
func Meaningful(before, after *unstructured.Unstructured) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetUID() != after.GetUID() ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		lostInventory(before, after) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// lostInventory reports whether somebody took the inventory away, as a restored backup
// does, or a person whom the engine has asked to. The engine itself never does.
func lostInventory(before, after *unstructured.Unstructured) bool {
	return hasInventory(before) && !hasInventory(after)
}

func hasInventory(u *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "inventory")
	return found
}
