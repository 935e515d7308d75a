package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// An APIRemoval says that Kubernetes no longer serves a version of a built-in kind, or never served it.
type APIRemoval struct {
	// Since is the version of Kubernetes without it, as in 1.16, or "" if no version of it is known to have it.
	Since string
	// Instead are the versions to write instead, such as apps/v1; the first one is the best.
	Instead []schema.GroupVersion
}

// String says since when, and what to write, for a message that has named the kind.
func (r APIRemoval) String() string {
	out := "no version of Kubernetes is known to have it"
	if r.Since != "" {
		out = "Kubernetes has removed it in " + r.Since
	}
	if len(r.Instead) > 0 {
		out += fmt.Sprintf("; write apiVersion: %q", r.Instead[0])
	}
	return out
}

// APIRemovalOf returns whether Kubernetes has removed a kind. It goes by the types of client-go, which record their
// own removal. It returns false for a kind that it serves, and for one that is not built in.
func APIRemovalOf(kind schema.GroupVersionKind) (APIRemoval, bool) {
	if !builtIn().Has(kind.GroupKind()) {
		return APIRemoval{}, false
	}
	since, removed := removedSince(kind)
	if !removed && scheme.Scheme.Recognizes(kind) {
		return APIRemoval{}, false
	}
	return APIRemoval{Since: since, Instead: servedVersions(kind.GroupKind())}, true
}

// servedVersions returns the versions in which a kind is served, in the order in which they are preferred.
func servedVersions(kind schema.GroupKind) []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, version := range scheme.Scheme.PrioritizedVersionsForGroup(kind.Group) {
		of := version.WithKind(kind.Kind)
		if _, removed := removedSince(of); !removed && scheme.Scheme.Recognizes(of) {
			out = append(out, version)
		}
	}
	return out
}

// An apiLifecycle is what the types of k8s.io/api say of versions that come to an end.
type apiLifecycle interface {
	APILifecycleRemoved() (major, minor int)
}

// KubernetesMinor is the minor version of Kubernetes whose types the engine has. A removal that the types announce
// for a later version has not happened yet.
const KubernetesMinor = 37

// removedSince returns the version of Kubernetes that has removed a kind.
func removedSince(kind schema.GroupVersionKind) (since string, removed bool) {
	object, err := scheme.Scheme.New(kind)
	if err != nil {
		return "", false
	}
	ends, has := object.(apiLifecycle)
	if !has {
		return "", false
	}
	major, minor := ends.APILifecycleRemoved()
	if major > 1 || minor > KubernetesMinor {
		return "", false
	}
	return fmt.Sprintf("%d.%d", major, minor), true
}
