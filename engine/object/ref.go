// Package object has the type that says which Kubernetes object is meant. Packages that read
// a cluster and packages that know only CUE use the same one.
package object

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Ref identifies one object. The object of a package may have a Ref before it is complete,
// so that it can be recorded before it is written; its namespace may be left out.
type Ref struct {
	schema.GroupVersionKind
	Namespace string
	Name      string
}

// RefOf returns the identity of an object. Its kind is kept even if the apiVersion is malformed,
// because a Secret has to be recognized in any case.
func RefOf(u *unstructured.Unstructured) Ref {
	kind := schema.FromAPIVersionAndKind(u.GetAPIVersion(), u.GetKind())
	return Ref{GroupVersionKind: kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Known reports whether everything but the namespace is known.
func (r Ref) Known() bool { return r.Version != "" && r.Kind != "" && r.Name != "" }

// Object returns an object that has this identity and a UID, and nothing else.
func (r Ref) Object(uid types.UID) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(r.GroupVersionKind)
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	u.SetUID(uid)
	return u
}

// String returns the identity as a person writes it: Deployment default/web.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Identity returns the identity without the version: one object may be read in
// several.
func (r Ref) Identity() Ref {
	r.Version = ""
	return r
}
