package install

import (
	_ "embed" // the health check

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// healthCheck is the script by which Argo CD knows the health of a resource. config/argocd has it as an entry for one kind.
//
//go:embed health.lua
var healthCheck string

// ArgoCD returns the part of the ConfigMap of Argo CD by which it knows the health of resources of some kinds.
// Server-side apply leaves the rest of the ConfigMap as it is.
func ArgoCD(kinds []schema.GroupKind) *corev1.ConfigMap {
	out := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		// Argo CD reads no ConfigMap without this label.
		ObjectMeta: metav1.ObjectMeta{Name: "argocd-cm", Namespace: "argocd", Labels: map[string]string{"app.kubernetes.io/part-of": "argocd"}},
		Data:       map[string]string{},
	}
	for _, kind := range kinds {
		out.Data["resource.customizations.health."+kind.Group+"_"+kind.Kind] = healthCheck
	}
	return out
}
