package vet

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
)

// versions finds objects of Kubernetes in a version that no API server serves any more, or that none ever did. It
// warns, because the package may be for an old cluster, or for a newer one than the engine knows.
func versions(v *view) fault.Faults {
	told := map[schema.GroupVersionKind]bool{}
	var out fault.Faults
	for _, s := range v.evaluations() {
		for _, o := range s.objects() {
			kind := o.Identity.GroupVersionKind
			removal, is := cluster.APIRemovalOf(kind)
			if !is || told[kind] {
				continue
			}
			told[kind] = true
			out = append(out, fault.Fault{
				Position: o.Position, Path: o.path("apiVersion"),
				Message: fmt.Sprintf("Kubernetes does not serve %s in %s", kind.Kind, kind.GroupVersion()), Hint: removal.String(),
			})
		}
	}
	return out
}
