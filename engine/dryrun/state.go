package dryrun

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/status"
)

// Ready reports whether a resource is ready, and returns the reason and message of the condition.
func (w *World) Ready(ref cluster.Ref) (bool, string) {
	u := w.Get(ref)
	if u == nil {
		return false, "it does not exist"
	}
	reported, _, _ := unstructured.NestedMap(u.Object, "status")
	if c := status.Condition(reported, status.ConditionReady); c != nil {
		return c.Status == metav1.ConditionTrue, c.Reason + ": " + c.Message
	}
	return false, "nothing is known of it"
}

// allReady reports whether every resource is ready.
func (w *World) allReady() bool {
	return !slices.ContainsFunc(w.Cluster.Refs(), func(ref cluster.Ref) bool {
		ready, _ := w.Ready(ref)
		return w.Serves(ref.GroupKind()) && !ready
	})
}

// A Part is one component of a resource, with those of its objects that exist.
type Part struct {
	Name    string
	Objects []cluster.Ref
}

// Owned returns the objects in the inventory of a resource that exist, by component.
func (w *World) Owned(ref cluster.Ref) []Part {
	inventory, _ := ownership.InventoryOf(w.Get(ref)) // one that cannot be read has none
	var out []Part
	for _, g := range inventory {
		p := Part{Name: g.Component}
		for _, e := range g.Objects {
			if r := e.Ref(ref.Namespace); w.Get(r) != nil {
				p.Objects = append(p.Objects, r)
			}
		}
		if len(p.Objects) > 0 {
			out = append(out, p)
		}
	}
	return out
}
