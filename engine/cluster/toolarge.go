package cluster

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// largeWrite is from how many bytes on a write may be refused for its size alone. An API
// server takes 3 MiB, its store 1.5 MiB, with the managed fields and, for a status, with
// the rest of the object.
const largeWrite = 256 << 10

// IsTooLarge reports whether an API server has refused to write an object because of its
// size. It says so itself of what it does not read (413). What its store does not take it
// passes on as an internal error that has no reason (500, as of Kubernetes 1.37), and so
// it does other errors of the store: of those, only one about a large object counts. The
// object is what was sent, or all that is stored, whichever is larger.
func IsTooLarge(object *unstructured.Unstructured, err error) bool {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Code != http.StatusInternalServerError || answer.Status().Reason != metav1.StatusReasonUnknown {
		return false
	}
	return SizeOf(object.Object) >= largeWrite
}

// SizeOf returns how many bytes data has as JSON.
func SizeOf(data map[string]any) int {
	b, err := json.Marshal(data)
	if err != nil {
		return 0 // what has come from JSON goes to JSON
	}
	return len(b)
}
