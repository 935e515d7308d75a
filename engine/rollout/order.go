package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// The order of kinds within a component, as kubectl, Helm and Flux have it: first Namespaces and
// definitions, which others need, and last webhooks and aggregated APIs, which act on the writes of
// others. Between them is the author's order.
const (
	first = iota
	between
	last
)

// rankOf returns the rank of a kind in the order.
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

// byKind returns objects in the order in which they are written. The author's order alone does not
// suffice: CUE puts the fields of if and for before those beside them, so a Namespace could come
// after its content.
func byKind(want []ownership.Desired) []ownership.Desired {
	out := slices.Clone(want)
	slices.SortStableFunc(out, func(a, b ownership.Desired) int {
		return cmp.Compare(rankOf(a.Ref().GroupKind()), rankOf(b.Ref().GroupKind()))
	})
	return out
}

// comesFirst reports whether the other objects of a component may need one.
func comesFirst(d ownership.Desired) bool { return rankOf(d.Ref().GroupKind()) == first }

// defines reports whether a component renders the definition of a kind. The objects of that kind
// wait until it is written and served.
func defines(c program.Component, kind schema.GroupKind) bool {
	return slices.ContainsFunc(c.Objects, func(o program.Object) bool {
		defined, _, _ := cluster.DefinedBy(o.Manifest)
		return defined.Kind != "" && defined == kind
	})
}
