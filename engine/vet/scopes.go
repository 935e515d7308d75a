package vet

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// Scopes are the scopes of kinds that are not built in.
type Scopes map[schema.GroupKind]cluster.Scope

// of returns the scope of a kind, or "" if it is unknown.
func (s Scopes) of(kind schema.GroupKind) cluster.Scope {
	if scope, given := s[kind]; given {
		return scope
	}
	scope, _ := cluster.KnownScope(kind)
	return scope
}

// withOwn returns the scopes together with those of the kinds of the package: its own, and those
// that its objects define.
func (s Scopes) withOwn(p *program.Program, samples []sample) Scopes {
	out := maps.Clone(s)
	if out == nil {
		out = Scopes{}
	}
	for _, sample := range samples {
		for _, o := range sample.objects() {
			if kind, scope, defines := cluster.DefinedBy(o.Manifest); defines {
				out[kind] = scope
			}
		}
	}
	out[p.GroupVersionKind().GroupKind()] = cluster.Namespaced
	if p.Meta().ClusterScoped {
		out[p.GroupVersionKind().GroupKind()] = cluster.ClusterScoped
	}
	return out
}

// scopes asks for the definitions of custom kinds: a package has to list the cluster-scoped kinds that
// it renders.
func scopes(v *view) fault.Faults {
	if v.Meta().ClusterScoped {
		return nil
	}
	asked := map[schema.GroupKind]bool{}
	var out fault.Faults
	for _, s := range v.samples {
		for _, o := range s.objects() {
			kind := o.Identity.GroupKind()
			if v.scopes.of(kind) != "" || o.Identity.Namespace != "" || asked[kind] {
				continue
			}
			asked[kind] = true
			out = append(out, fault.Fault{
				Position: o.Position, Path: o.path(),
				Message: fmt.Sprintf("it is not known whether the kind %s is namespaced", kind),
				Hint:    "give its CustomResourceDefinition with -f or --crds, or in the folder crds next to cue.mod",
			})
		}
	}
	return out
}
