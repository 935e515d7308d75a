package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// The order of kinds within a component, as kubectl, Helm and Flux have it: what others
// live in comes first, what acts on the writes of others last. Between them is the
// author's order.
const (
	first = iota
	between
	last
)

// rankOf returns the place of a kind in the order.
func rankOf(kind schema.GroupKind) int {
	switch {
	case kind == schema.GroupKind{Kind: "Namespace"}, kind == definitionKind:
		return first
	case kind.Group == "admissionregistration.k8s.io", kind == schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return last
	}
	return between
}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// byKind returns objects in the order in which they are written. CUE puts what comes from
// if and for before the fields beside it, so that the author's order alone would write a
// Namespace after its content.
func byKind(want []ownership.Desired) []ownership.Desired {
	out := slices.Clone(want)
	slices.SortStableFunc(out, func(a, b ownership.Desired) int {
		return cmp.Compare(rankOf(a.Ref().GroupKind()), rankOf(b.Ref().GroupKind()))
	})
	return out
}

// comesFirst reports whether the other objects of a component may rest on one.
func comesFirst(d ownership.Desired) bool { return rankOf(d.Ref().GroupKind()) == first }

// defines reports whether a component has the definition of a kind: the objects of that
// kind wait until it is written and served.
func defines(c program.Component, kind schema.GroupKind) bool {
	return slices.ContainsFunc(c.Objects, func(o program.Object) bool {
		if o.Identity.GroupKind() != definitionKind {
			return false
		}
		group, _, _ := unstructured.NestedString(o.Manifest, "spec", "group")
		name, _, _ := unstructured.NestedString(o.Manifest, "spec", "names", "kind")
		return schema.GroupKind{Group: group, Kind: name} == kind
	})
}
