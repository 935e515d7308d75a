// Package cluster is how the engine reads and writes Kubernetes objects: the
// DeployManager of older frameworks. It knows identities, not components, and
// decides nothing.
//
// Cluster is one small interface with the calling protocol below. Live is the
// implementation on a real API server.
//
//  1. GetCached before anything: it starts watching the kind, so that no event is missed
//     between a read and the next change, and it sees what Apply wrote before.
//  2. GetLive before the first write of an object that GetCached did not find: the answer
//     is the API server's, not a cache's.
//  3. Apply and Delete with the UID that was seen, so that an object that was
//     replaced in the meantime is left alone.
package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/object"
)

// FieldManager is the name under which the engine owns fields. It is part of the
// product's contract: another name would orphan every field written before.
const FieldManager = "operetta"

// TeardownFinalizer is what a custom resource has whose objects the engine deletes in
// order. It is part of the product's contract.
const TeardownFinalizer = "operetta.dev/teardown"

// HandOverManager is the name under which fields stay that the engine has given up.
const HandOverManager = FieldManager + "-relinquished"

// A Ref identifies one object of a cluster. It is the type of package object, as an ObjectKey
// of controller-runtime is a NamespacedName.
type Ref = object.Ref

// RefOf returns the identity of an object.
func RefOf(u *unstructured.Unstructured) Ref { return object.RefOf(u) }

// A Selection says which objects of a kind are listed.
type Selection struct {
	Kind schema.GroupVersionKind
	// Namespace is where they are; "" is everywhere.
	Namespace string
	// Name is the name that they have, and Labels are labels; "" and none are any.
	Name   string
	Labels map[string]string
	// Limit is how many a live list returns at most; 0 is all.
	Limit int64
}

// Scope says where the objects of a kind live.
type Scope string

// The scopes.
const (
	Namespaced    Scope = "Namespaced"
	ClusterScoped Scope = "Cluster"
)

// A Cluster reads and writes objects. Methods are safe for concurrent use.
type Cluster interface { //nolint:interfacebloat // the engine reads and writes objects in one way
	// GetCached returns an object as last observed, including what this process wrote,
	// or nil when it does not exist. The caller must not change it.
	GetCached(ctx context.Context, ref Ref) (*unstructured.Unstructured, error)

	// GetLive returns an object as the API server has it now, or nil when it does
	// not exist.
	GetLive(ctx context.Context, ref Ref) (*unstructured.Unstructured, error)

	// ListCached returns the objects of a selection as last observed, including what this
	// process wrote, sorted by name. The caller must not change them.
	ListCached(ctx context.Context, s Selection) ([]*unstructured.Unstructured, error)

	// ListLive returns the objects of a selection as the API server has them now.
	ListLive(ctx context.Context, s Selection) ([]*unstructured.Unstructured, error)

	// Apply writes an object by server-side apply as FieldManager and returns
	// the result. With a UID in the object it fails with a conflict unless
	// exactly that object exists; without one it creates the object, and fails with
	// AlreadyExists when there is one. An object that its kind does not allow is
	// refused with a SchemaError, where that can be told.
	Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error)

	// HandOver takes over fields of an object, with the values that they have,
	// under a name of its own: what the engine then no longer applies stays as it
	// is until somebody else changes it. It takes a UID as Apply does.
	HandOver(ctx context.Context, fields *unstructured.Unstructured) error

	// Replace writes an object as a whole over the one with its UID and resource
	// version, as FieldManager, and returns the result.
	Replace(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error)

	// Probe errors as the API server would if it were to create the object under
	// another name. It tells a manifest that is wrong from a change that is not
	// allowed, and writes nothing.
	Probe(ctx context.Context, object *unstructured.Unstructured) error

	// DryRun returns a cluster whose writes are checked as those of this one, and not
	// carried out.
	DryRun() Cluster

	// Owned returns everything in a namespace that has the owner label with a value, of
	// whatever kind, with its metadata alone; "" is everywhere, and also what is in no
	// namespace. It asks for each kind, and is for emergencies.
	Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error)

	// Delete removes the object with that UID, its dependents first. It is no
	// error when the object is gone or was replaced by another.
	Delete(ctx context.Context, ref Ref, uid types.UID) error

	// ApplyStatus writes the status of the object with that UID as FieldManager, and makes of
	// the argument what was answered. It is no error when the object is gone.
	ApplyStatus(ctx context.Context, object *unstructured.Unstructured) error

	// ApplyFinalizers makes the engine's finalizers of the object with that UID those that
	// the argument has. It is no error to take them from an object that is gone.
	ApplyFinalizers(ctx context.Context, object *unstructured.Unstructured) error

	// Scope returns where the objects of a kind live.
	Scope(ctx context.Context, kind schema.GroupVersionKind) (Scope, error)
}

// A KindNotServedError says that the cluster does not know a kind, most often
// because its CustomResourceDefinition is not installed yet.
type KindNotServedError struct {
	Kind schema.GroupVersionKind
	// Remedy is what the person who asked can do about it, or "".
	Remedy string
}

// Error names the kind and what to do about it.
func (e *KindNotServedError) Error() string {
	text := fmt.Sprintf("the cluster does not serve %s %s", e.Kind.GroupVersion(), e.Kind.Kind)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// A KindUnreadableError says that nothing is known of the objects of a kind: the
// operator may not list and watch them, or the API server cannot.
type KindUnreadableError struct {
	Kind  schema.GroupVersionKind
	Cause error
}

// Error names the kind and the cause.
func (e *KindUnreadableError) Error() string {
	return fmt.Sprintf("%s %s cannot be read: %v", e.Kind.GroupVersion(), e.Kind.Kind, e.Cause)
}

// Unwrap returns the cause.
func (e *KindUnreadableError) Unwrap() error { return e.Cause }
