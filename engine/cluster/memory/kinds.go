package memory

import (
	"slices"

	"operetta.dev/engine/cluster"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// clusterScoped are Kubernetes' own kinds without a namespace, by group.
var clusterScoped = map[string][]string{
	"": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
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

// generational are Kubernetes' own kinds that count generations, by group.
var generational = map[string][]string{
	"":                             {"Pod", "PodTemplate", "ReplicationController"},
	"admissionregistration.k8s.io": clusterScoped["admissionregistration.k8s.io"],
	"apps":                         {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"batch":                        {"CronJob", "Job"},
	"discovery.k8s.io":             {"EndpointSlice"},
	"flowcontrol.apiserver.k8s.io": clusterScoped["flowcontrol.apiserver.k8s.io"],
	"networking.k8s.io":            {"Ingress", "IngressClass", "NetworkPolicy"},
	"policy":                       {"PodDisruptionBudget"},
	"resource.k8s.io":              clusterScoped["resource.k8s.io"],
	"scheduling.k8s.io":            {"PriorityClass"},
}

// definitions is the kind that defines others. The scheme of client-go does not have it,
// and every API server does.
var definitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// builtin returns the scope of one of Kubernetes' own kinds.
func builtin(kind schema.GroupVersionKind) (cluster.Scope, bool) {
	if kind.GroupKind() == definitions {
		return cluster.ClusterScoped, true
	}
	if !scheme.Scheme.Recognizes(kind) {
		return "", false
	}
	if slices.Contains(clusterScoped[kind.Group], kind.Kind) {
		return cluster.ClusterScoped, true
	}
	return cluster.Namespaced, true
}

// firstGeneration is the generation of a new object. Every custom resource has one.
func firstGeneration(kind schema.GroupVersionKind) int64 {
	if scheme.Scheme.Recognizes(kind) && !slices.Contains(generational[kind.Group], kind.Kind) {
		return 0
	}
	return 1
}
