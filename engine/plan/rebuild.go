package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Rebuild returns the inventory that an owner's objects speak of by their marks:
// what is left to go by when the one in the status was lost. Objects that belong to
// somebody else are left out.
func Rebuild(owner Owner, objects []*unstructured.Unstructured) Inventory {
	var out Inventory
	for _, u := range objects {
		if situation, _ := Situate(u, owner); situation != Owned && situation != Terminating {
			continue
		}
		component, object, ok := strings.Cut(u.GetAnnotations()[ComponentMark], "/")
		if !ok {
			continue
		}
		var after []string
		if mark := u.GetAnnotations()[AfterMark]; mark != "" {
			after = strings.Split(mark, ",")
		}
		out = out.With(component, after, []Entry{entryOf(u, object, owner.Namespace)})
	}
	slices.SortStableFunc(out, func(a, b Group) int { return strings.Compare(a.Component, b.Component) })
	return out
}

// entryOf returns the entry of an object that exists.
func entryOf(u *unstructured.Unstructured, object, ownerNamespace string) Entry {
	e := Entry{Object: object, APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), Digest: u.GetAnnotations()[AppliedMark], UID: uidOf(u)}
	e.Orphan = u.GetAnnotations()[DeleteMark] == orphan
	switch {
	case u.GetNamespace() == ownerNamespace:
	case u.GetNamespace() == "":
		e.ClusterScoped = true
	default:
		e.Namespace = u.GetNamespace()
	}
	return e
}
