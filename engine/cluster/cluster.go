// Package cluster reads and writes Kubernetes objects for the engine. It knows the identities of objects,
// not the components that they belong to, and it decides nothing: what to write is for its callers.
//
// Cluster is the interface, and Live implements it on an API server. Call it in this order:
//
//  1. GetCached first: it starts a watch of the kind, so that no event is missed between the read
//     and the next change, and its result includes earlier writes.
//  2. GetLive before the first write of an object that GetCached did not find, because a cache may
//     be stale.
//  3. Apply and Delete with the UID that was read, so that an object that was replaced in the
//     meantime is not changed.
package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/object"
)

// TeardownFinalizer is what a custom resource has whose objects the engine deletes in
// order. It is part of the product's contract.
const TeardownFinalizer = "operetta.dev/teardown"

// A Ref identifies one object of a cluster. It is the type of package object, as an ObjectKey
// of controller-runtime is a NamespacedName.
type Ref = object.Ref

// RefOf returns the identity of an object.
func RefOf(u *unstructured.Unstructured) Ref { return object.RefOf(u) }

// A Selection selects objects of a kind for a list.
type Selection struct {
	Kind schema.GroupVersionKind
	// Namespace is their namespace; "" stands for all.
	Namespace string
	// Name and Labels select by name and labels; "" and nil select all.
	Name   string
	Labels map[string]string
	// Limit bounds a live list; 0 means no limit.
	Limit int64
	// OnlyMetadata makes a live list return the metadata of the objects, and nothing else of them.
	OnlyMetadata bool
}

// Scope says whether the objects of a kind have a namespace.
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

	// Probe returns the error of the API server for creating the object anew, by a dry run as if there were
	// none of its name. It tells an invalid manifest, and a creation that admission denies, from a change that is not allowed.
	Probe(ctx context.Context, object *unstructured.Unstructured) error

	// DryRun returns a cluster whose writes are validated but not persisted.
	DryRun() Cluster

	// Owned returns the objects of all kinds in a namespace whose label has a value, with only
	// their metadata; namespace "" stands for all namespaces and cluster-scoped objects. It sends a
	// request for each kind, so it is for emergencies. The caller must not change them.
	Owned(ctx context.Context, namespace, label, value string) ([]*unstructured.Unstructured, error)

	// Delete deletes the object with that UID, dependents first. It returns nil if the object does
	// not exist or has another UID.
	Delete(ctx context.Context, ref Ref, uid types.UID) error

	// ApplyStatus writes the status of the object with that UID as FieldManager, and updates the
	// argument with the response. It returns nil if the object does not exist.
	ApplyStatus(ctx context.Context, object *unstructured.Unstructured) error

	// ApplyFinalizers sets the engine's finalizers of the object with that UID to those of the
	// argument. It returns nil if it removes them and the object does not exist.
	ApplyFinalizers(ctx context.Context, object *unstructured.Unstructured) error

	// Scope returns the scope of a kind. It errors with a KindNotServedError if there is none.
	Scope(ctx context.Context, kind schema.GroupVersionKind) (Scope, error)

	// ServedVersion returns a version in which a kind is served now, or "" if there is none: a
	// KindNotServedError may be about one version alone. It asks the API server for all kinds, and may answer
	// as of some seconds ago.
	ServedVersion(ctx context.Context, kind schema.GroupKind) (string, error)
}

// A KindNotServedError says that the cluster does not serve a kind, usually because its
// CustomResourceDefinition is not installed yet.
type KindNotServedError struct {
	Kind schema.GroupVersionKind
	// Remedy says what the user can do about it, or is "".
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

// A KindUnreadableError says that the objects of a kind cannot be read: the operator may not list and
// watch them, or the API server fails to.
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
