package main

// A source is a Go package to translate, and the place of its CUE package.
type source struct {
	goPath string // import path of the Go package
	dir    string // folder under schemas/k8s
	alias  string // name under which other generated packages import it
	// support marks a package that is not an API group: only declarations that the groups refer to are
	// taken from it.
	support bool
}

// packages are the Go packages that are translated, each after those that it imports.
var packages = []source{
	{goPath: "k8s.io/apimachinery/pkg/api/resource", dir: "api/resource", alias: "resource", support: true},
	{goPath: "k8s.io/apimachinery/pkg/util/intstr", dir: "util/intstr", alias: "intstr", support: true},
	{goPath: "k8s.io/apimachinery/pkg/apis/meta/v1", dir: "meta/v1", alias: "metav1", support: true},

	{goPath: "k8s.io/api/core/v1", dir: "core/v1", alias: "corev1"},
	{goPath: "k8s.io/api/admissionregistration/v1", dir: "admissionregistration/v1", alias: "admissionregistrationv1"},
	{goPath: "k8s.io/api/apps/v1", dir: "apps/v1", alias: "appsv1"},
	{goPath: "k8s.io/api/autoscaling/v1", dir: "autoscaling/v1", alias: "autoscalingv1"},
	{goPath: "k8s.io/api/autoscaling/v2", dir: "autoscaling/v2", alias: "autoscalingv2"},
	{goPath: "k8s.io/api/scheduling/v1alpha3", dir: "scheduling/v1alpha3", alias: "schedulingv1alpha3", support: true},
	{goPath: "k8s.io/api/batch/v1", dir: "batch/v1", alias: "batchv1"},
	{goPath: "k8s.io/api/certificates/v1", dir: "certificates/v1", alias: "certificatesv1"},
	{goPath: "k8s.io/api/coordination/v1", dir: "coordination/v1", alias: "coordinationv1"},
	{goPath: "k8s.io/api/discovery/v1", dir: "discovery/v1", alias: "discoveryv1"},
	{goPath: "k8s.io/api/events/v1", dir: "events/v1", alias: "eventsv1"},
	{goPath: "k8s.io/api/networking/v1", dir: "networking/v1", alias: "networkingv1"},
	{goPath: "k8s.io/api/node/v1", dir: "node/v1", alias: "nodev1"},
	{goPath: "k8s.io/api/policy/v1", dir: "policy/v1", alias: "policyv1"},
	{goPath: "k8s.io/api/rbac/v1", dir: "rbac/v1", alias: "rbacv1"},
	{goPath: "k8s.io/api/resource/v1", dir: "resource/v1", alias: "resourcev1"},
	{goPath: "k8s.io/api/scheduling/v1", dir: "scheduling/v1", alias: "schedulingv1"},
	{goPath: "k8s.io/api/storage/v1", dir: "storage/v1", alias: "storagev1"},
}
