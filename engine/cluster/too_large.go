package cluster

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// largeWrite is the size in bytes from which a write may be rejected for its size. An API server
// accepts 3 MiB and its store 1.5 MiB, including the managed fields and, for a status, the rest of
// the object.
const largeWrite = 256 << 10

// IsTooLarge reports whether an API server rejected an object because of its size. The server returns
// 413 for a request that it does not read. If its store rejects the object, it returns an internal
// error without a reason (500, as of Kubernetes 1.37), as it does for other errors of the store, so
// such an error counts only for a large object. The object is what was sent or what is stored,
// whichever is larger.
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

// SizeOf returns the size of data as JSON, in bytes.
func SizeOf(data map[string]any) int {
	b, err := json.Marshal(data)
	if err != nil {
		return 0 // impossible: the data was decoded from JSON
	}
	return len(b)
}
