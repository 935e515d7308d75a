package memory

import (
	"slices"

	"operetta.dev/engine/cluster"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// kindsWithGeneration are the built-in kinds that have a generation, by group.
var kindsWithGeneration = map[string][]string{
	"":                             {"Pod", "PodTemplate", "ReplicationController"},
	"admissionregistration.k8s.io": cluster.ClusterScopedKinds("admissionregistration.k8s.io"),
	"apps":                         {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"autoscaling":                  {"HorizontalPodAutoscaler"},
	"batch":                        {"CronJob", "Job"},
	"discovery.k8s.io":             {"EndpointSlice"},
	"flowcontrol.apiserver.k8s.io": cluster.ClusterScopedKinds("flowcontrol.apiserver.k8s.io"),
	"networking.k8s.io":            {"Ingress", "IngressClass", "NetworkPolicy"},
	"policy":                       {"PodDisruptionBudget"},
	"resource.k8s.io":              cluster.ClusterScopedKinds("resource.k8s.io"),
	"scheduling.k8s.io":            {"PriorityClass"},
}

// builtin returns the scope of a built-in kind, and false for any other kind, and for a version that is unknown or that
// Kubernetes has removed.
func builtin(kind schema.GroupVersionKind) (cluster.Scope, bool) {
	if _, removed := cluster.APIRemovalOf(kind); removed {
		return "", false
	}
	scope, known := cluster.KnownScope(kind.GroupKind())
	if scheme.Scheme.IsGroupRegistered(kind.Group) && !scheme.Scheme.Recognizes(kind) {
		return "", false
	}
	return scope, known
}

// firstGeneration is the generation of a new object. Every custom resource has one.
func firstGeneration(kind schema.GroupVersionKind) int64 {
	if scheme.Scheme.Recognizes(kind) && !slices.Contains(kindsWithGeneration[kind.Group], kind.Kind) {
		return 0
	}
	return 1
}
