package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// KnownScope returns the scope of one of Kubernetes' own kinds, and false for any other
// kind: of those only a cluster knows, or a CustomResourceDefinition. It is what there is
// without a cluster to ask.
func KnownScope(kind schema.GroupKind) (Scope, bool) {
	switch {
	case slices.Contains(clusterScoped[kind.Group], kind.Kind):
		return ClusterScoped, true
	case len(scheme.Scheme.VersionsForGroupKind(kind)) > 0:
		return Namespaced, true
	}
	return "", false
}

// DefinedBy returns the kind that an object defines, and where the objects of that live. It is
// false for what is no CustomResourceDefinition.
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

// WithoutNamespace returns Kubernetes' own kinds of a group whose objects are in no namespace.
func WithoutNamespace(group string) []string { return clusterScoped[group] }

// clusterScoped are Kubernetes' own kinds without a namespace, by group. The scheme of
// client-go does not say which these are, and does not have the kinds of definitions and of
// aggregated APIs, which every API server has; a test compares the rest with an API server.
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
