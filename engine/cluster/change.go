package cluster

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// An Operation says what a change does to an object.
type Operation string

// The operations.
const (
	Created Operation = "create"
	Updated Operation = "update"
	Deleted Operation = "delete"
)

// A Change is one write.
type Change struct {
	Operation Operation
	Ref       Ref
}

// String returns the change on one line.
func (c Change) String() string { return string(c.Operation) + " " + c.Ref.String() }

// An ObjectChange is a change with the objects, as a watch reports it.
type ObjectChange struct {
	Change
	// Before is the object before the change, or nil, and Object the object after it, or the last
	// state of a deleted one. The receiver must not modify them.
	Before, Object *unstructured.Unstructured
}
