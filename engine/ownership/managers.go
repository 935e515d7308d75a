package ownership

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Managers says which field managers own the fields of an object. The zero value knows none.
type Managers struct{ all []managedSet }

// A managedSet is the fields of one manager.
type managedSet struct {
	name   string
	fields *fieldpath.Set
}

// ManagersOf returns the field managers of an object, which may be nil.
func ManagersOf(live *unstructured.Unstructured) Managers {
	out := Managers{}
	if live == nil {
		return out
	}
	for _, m := range ManagedFields(live) {
		name := m.Manager
		if m.Subresource != "" {
			name += " (" + m.Subresource + ")"
		}
		if set := FieldSet(m); set != nil {
			out.all = append(out.all, managedSet{name, set})
		}
	}
	return out
}

// Of returns the names of the managers that own a field, something below it, or the whole list or map that it is
// in, sorted. An item of a list may be given by some of its keys: who asks does not know which ones the API
// server uses.
func (m Managers) Of(path fieldpath.Path) []string {
	var out []string
	for _, s := range m.all {
		if ownsBelow(s.fields, path) && !slices.Contains(out, s.name) {
			out = append(out, s.name)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// ownsBelow reports whether a set has a field, something below it, or what contains it.
func ownsBelow(set *fieldpath.Set, path fieldpath.Path) bool {
	for i, at := range path {
		deeper, found := childOf(set, at)
		if !found {
			return hasMember(set, at) || i > 0 && at.FieldName == nil && ownsList(set)
		}
		set = deeper
	}
	return len(path) > 0
}

// ownsList reports whether a set has items of a list by their values, as it has those of a set.
func ownsList(set *fieldpath.Set) bool {
	found := false
	set.Members.Iterate(func(e fieldpath.PathElement) { found = found || e.Value != nil })
	return found
}

// childOf returns what a set has below an element.
func childOf(set *fieldpath.Set, at fieldpath.PathElement) (*fieldpath.Set, bool) {
	if child, found := set.Children.Get(at); found || at.Key == nil {
		return child, found
	}
	var out *fieldpath.Set
	set.Children.Iterate(func(e fieldpath.PathElement) {
		if out == nil && hasKeys(e, *at.Key) {
			out, _ = set.Children.Get(e)
		}
	})
	return out, out != nil
}

// hasMember reports whether a set has an element itself.
func hasMember(set *fieldpath.Set, at fieldpath.PathElement) bool {
	if set.Members.Has(at) || at.Key == nil {
		return set.Members.Has(at)
	}
	found := false
	set.Members.Iterate(func(e fieldpath.PathElement) { found = found || hasKeys(e, *at.Key) })
	return found
}

// hasKeys reports whether an element of a list has all of some keys.
func hasKeys(e fieldpath.PathElement, keys value.FieldList) bool {
	if e.Key == nil {
		return false
	}
	for _, want := range keys {
		if !slices.ContainsFunc(*e.Key, func(f value.Field) bool { return f.Name == want.Name && value.Equals(f.Value, want.Value) }) {
			return false
		}
	}
	return true
}
