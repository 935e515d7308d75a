package cluster

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// A Verb is what a change does to an object.
type Verb string

// The verbs.
const (
	Created Verb = "create"
	Updated Verb = "update"
	Deleted Verb = "delete"
)

// A Change is something that was written.
type Change struct {
	Verb Verb
	Ref  Ref
}

// String returns the change on one line.
func (c Change) String() string { return string(c.Verb) + " " + c.Ref.String() }

// An Event is a change as a watch reports it.
type Event struct {
	Change
	// Before is what was there, or nil, and Object what the change has made of it; of
	// one that is gone, that is its last state. Neither is to be changed.
	Before, Object *unstructured.Unstructured
}
