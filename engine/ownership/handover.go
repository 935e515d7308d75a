package ownership

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ReplicasToHandOver returns the field that must keep its value although the package no longer
// renders it, or nil.
//
// It is the number of replicas, which a package stops rendering when an autoscaler takes over.
// The API server would remove the field, like any that no manager applies any more, and default it to
// one, which takes a running application down.
func ReplicasToHandOver(want Desired, live *unstructured.Unstructured) *unstructured.Unstructured {
	replicas := []string{"spec", "replicas"}
	value, exists, _ := unstructured.NestedInt64(live.Object, replicas...)
	_, rendered, _ := unstructured.NestedFieldNoCopy(want.Manifest.Object, replicas...)
	owned := ownedFields(live, operationsOf(want.Policy)...)
	if !exists || rendered || owned == nil || !owned.Has(fieldpath.MakePathOrDie("spec", "replicas")) {
		return nil
	}
	out := want.Ref().Object(live.GetUID())
	out.Object["spec"] = map[string]any{"replicas": value}
	return out
}
