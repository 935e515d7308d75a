package cluster

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// A Verb says what a change does to an object.
type Verb string

// The verbs.
const (
	Created Verb = "create"
	Updated Verb = "update"
	Deleted Verb = "delete"
)

// A Change is one write.
type Change struct {
	Verb Verb
	Ref  Ref
}

// String returns the change on one line.
func (c Change) String() string { return string(c.Verb) + " " + c.Ref.String() }

// An ObjectChange is a change with the objects, as a watch reports it.
type ObjectChange struct {
	Change
	// Before is the object before the change, or nil, and Object the object after it, or the last
	// state of a deleted one. The receiver must not modify them.
	Before, Object *unstructured.Unstructured
}
