package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// Canonical returns an object as an API server would write it: a quantity of 1000m as 1, for example. Fields that
// the type of the kind does not have are left out, and so are those that are the same as none. Objects of kinds that
// are not built in have no type: their numbers are written in one way, and nothing else changes.
func Canonical(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		text, err := k8sjson.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", RefOf(u), err)
		}
		out := map[string]any{}
		return &unstructured.Unstructured{Object: out}, k8sjson.Unmarshal(text, &out)
	}
	typed, err := scheme.Scheme.New(u.GroupVersionKind())
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", RefOf(u), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", RefOf(u), err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
