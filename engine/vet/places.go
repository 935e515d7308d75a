package vet

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program/syntax"
)

// A Place is where a permission has to hold: in the namespace of the custom resource, in another one, or
// everywhere.
type Place struct {
	// Namespace is another namespace than that of the custom resource, or "".
	Namespace  string `json:"namespace,omitempty"`
	Everywhere bool   `json:"everywhere,omitempty"`
}

// A Grant are the rules of a role that the package renders. A ClusterRole can be bound everywhere, so its
// rules have to hold everywhere for whoever writes it.
type Grant struct {
	Place

	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
}

// A BoundRole is a ClusterRole that the package binds.
type BoundRole struct {
	Place

	Role string `json:"role"`
}

// compare orders bindings by their roles, and then by their places.
func (b BoundRole) compare(other BoundRole) int {
	if b.Everywhere != other.Everywhere && b.Role == other.Role {
		return map[bool]int{true: -1, false: 1}[b.Everywhere]
	}
	return cmp.Or(cmp.Compare(b.Role, other.Role), cmp.Compare(b.Namespace, other.Namespace))
}

// placeOf returns the place of an object that an evaluation shows.
func (f *usesFinder) placeOf(o placed) Place {
	namespace := o.Identity.Namespace
	switch {
	case f.scopes.of(o.Identity.GroupKind()) == cluster.ClusterScoped:
		return Place{Everywhere: true}
	case namespace == "", namespace == sampleNamespace:
		return Place{}
	case slices.Contains(f.Reach().Namespaces(o.Identity.GroupKind()), namespace):
		return Place{Namespace: namespace}
	}
	return Place{Everywhere: true} // the namespace is made up, and may be any that the reach allows
}

// placesOf returns the places of a binding in the text: those that evaluations show, or all that it may have.
func (f *usesFinder) placesOf(o syntax.SourceObject) []Place {
	at := o.Path()
	component, object := at[len(at)-3], at[len(at)-1]
	out := map[Place]bool{}
	for _, p := range f.seen {
		if slices.Contains(bindings, p.Identity.Kind) && mayBeNamed(component, p.component) && mayBeNamed(object, p.Name) {
			out[f.placeOf(p)] = true
		}
	}
	if len(out) == 0 {
		for _, kind := range o.Kinds {
			f.addPossible(out, schema.GroupKind{Group: rbacGroup, Kind: kind})
		}
	}
	if out[Place{Everywhere: true}] {
		return []Place{{Everywhere: true}}
	}
	var places []Place
	for p := range out {
		places = append(places, p)
	}
	return places
}

// addPossible adds all places that objects of a kind may have.
func (f *usesFinder) addPossible(to map[Place]bool, kind schema.GroupKind) {
	if f.scopes.of(kind) == cluster.ClusterScoped {
		to[Place{Everywhere: true}] = true
		return
	}
	to[Place{}] = true
	for _, namespace := range f.Reach().Namespaces(kind) {
		if IsPattern(namespace) {
			to[Place{Everywhere: true}] = true
			continue
		}
		to[Place{Namespace: namespace}] = true
	}
}

// IsPattern reports whether a namespace of a reach stands for several.
func IsPattern(namespace string) bool { return namespace != "" && namespace[len(namespace)-1] == '*' }
