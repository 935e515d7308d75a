package object

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ShallowCopy returns a copy of an object whose top-level fields and fields of metadata may be set. Everything deeper
// is shared with the original.
func ShallowCopy(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	if meta, is := u.Object["metadata"].(map[string]any); is {
		out.Object["metadata"] = maps.Clone(meta)
	}
	return out
}
