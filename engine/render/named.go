package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
)

// IsNamed reports whether a text names an object of a component: by their names in the package, as in web, web.deployment
// and web/deployment, or by kind and name as kubectl takes them, as in deployment/shop.
func IsNamed(text, component string, o program.Object) bool {
	if slices.Contains([]string{component, component + "." + o.Name, component + "/" + o.Name}, text) {
		return true
	}
	kind, name, two := strings.Cut(text, "/")
	return two && name == o.Identity.Name && isKind(o.Identity, kind)
}

// isKind reports whether a word is the kind of an object, as kubectl takes it.
func isKind(ref object.Ref, word string) bool {
	plural, singular := meta.UnsafeGuessKindToResource(ref.GroupVersionKind)
	word, group, hasGroup := strings.Cut(strings.ToLower(word), ".")
	short, hasShort := shortNames[ref.GroupKind()]
	return (word == plural.Resource || word == singular.Resource || hasShort && word == short) && (!hasGroup || group == ref.Group)
}

// shortNames are those of the kinds of Kubernetes. Those of other kinds are in definitions, which a package does not have.
var shortNames = map[schema.GroupKind]string{
	{Kind: "ConfigMap"}:             "cm",
	{Kind: "Endpoints"}:             "ep",
	{Kind: "LimitRange"}:            "limits",
	{Kind: "Namespace"}:             "ns",
	{Kind: "PersistentVolume"}:      "pv",
	{Kind: "PersistentVolumeClaim"}: "pvc",
	{Kind: "Pod"}:                   "po",
	{Kind: "ReplicationController"}: "rc",
	{Kind: "ResourceQuota"}:         "quota",
	{Kind: "Service"}:               "svc",
	{Kind: "ServiceAccount"}:        "sa",
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: "crd",
	{Group: "apps", Kind: "DaemonSet"}:                                "ds",
	{Group: "apps", Kind: "Deployment"}:                               "deploy",
	{Group: "apps", Kind: "ReplicaSet"}:                               "rs",
	{Group: "apps", Kind: "StatefulSet"}:                              "sts",
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           "hpa",
	{Group: "batch", Kind: "CronJob"}:                                 "cj",
	{Group: "networking.k8s.io", Kind: "Ingress"}:                     "ing",
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:               "netpol",
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    "pdb",
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               "pc",
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                   "sc",
}
