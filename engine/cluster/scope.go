package cluster

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
)

// KnownScope returns the scope of a built-in kind without a cluster. It returns false for any other
// kind: only a cluster or a CustomResourceDefinition has its scope.
func KnownScope(kind schema.GroupKind) (Scope, bool) {
	switch {
	case slices.Contains(clusterScoped[kind.Group], kind.Kind):
		return ClusterScoped, true
	case builtIn().Has(kind):
		return Namespaced, true
	}
	return "", false
}

// builtIn are the kinds in the scheme of client-go, which goes through all of its types to find the
// versions of one kind.
var builtIn = sync.OnceValue(func() sets.Set[schema.GroupKind] {
	out := sets.New[schema.GroupKind]()
	for kind := range scheme.Scheme.AllKnownTypes() {
		out.Insert(kind.GroupKind())
	}
	return out
})

// BuiltInGroup returns the API group of Kubernetes whose name begins with a word, such as
// networking.k8s.io for networking, and the group without a name for core.
func BuiltInGroup(word string) (string, bool) {
	if word == "core" {
		return "", true
	}
	for kind := range builtIn() {
		if first, _, _ := strings.Cut(kind.Group, "."); first == word {
			return kind.Group, true
		}
	}
	return "", false
}

// DefinedBy returns the kind that an object defines and its scope. It returns false if the object is
// not a complete CustomResourceDefinition.
func DefinedBy(object map[string]any) (schema.GroupKind, Scope, bool) {
	u := unstructured.Unstructured{Object: object}
	if u.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return schema.GroupKind{}, "", false
	}
	group, _, _ := unstructured.NestedString(object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(object, "spec", "scope")
	return schema.GroupKind{Group: group, Kind: kind}, Scope(scope), group != "" && kind != "" && scope != ""
}

// ClusterScopedKinds returns the built-in kinds of a group that are cluster-scoped.
func ClusterScopedKinds(group string) []string { return clusterScoped[group] }

// clusterScoped are the built-in kinds that are cluster-scoped, by group. The scheme of client-go
// does not have scopes, nor the kinds of CustomResourceDefinitions and aggregated APIs, which every
// API server serves. A test compares the table with an API server.
var clusterScoped = map[string][]string{
	"": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"authentication.k8s.io":        {"SelfSubjectReview", "TokenReview"},
	"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
}
