package object

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ShallowCopy returns a copy of an object of which the fields of the metadata may be set, and fields at the top. What is
// further down is shared.
func ShallowCopy(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	if meta, is := u.Object["metadata"].(map[string]any); is {
		out.Object["metadata"] = maps.Clone(meta)
	}
	return out
}
