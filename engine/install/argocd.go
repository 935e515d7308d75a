package install

import (
	_ "embed" // the health check

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// healthCheck is the script by which Argo CD knows the health of a resource. config/argocd has it as an entry for one kind.
//
//go:embed health.lua
var healthCheck string

// ArgoCD returns a patch of the ConfigMap of Argo CD by which it knows the health of resources of some kinds. It is no object:
// whoever deletes what is installed, or takes it over, would carry off the configuration of Argo CD.
func ArgoCD(kinds []schema.GroupKind) map[string]any {
	data := map[string]any{}
	for _, kind := range kinds {
		data["resource.customizations.health."+kind.Group+"_"+kind.Kind] = healthCheck
	}
	return map[string]any{"data": data}
}
