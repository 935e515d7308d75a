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
		step := func(i int, in *fieldpath.Set) (fieldpath.PathElement, bool) { return elementLike(in, path[i]) }
		if shareOf(s.fields, len(path), step) != NoShare && !slices.Contains(out, s.name) {
			out = append(out, s.name)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// elementLike returns the element of a set that is meant by another one. An item of a list is meant by some of its keys.
// If the set has items by their values, as it has those of a list that is a set, any of them stands for one.
func elementLike(set *fieldpath.Set, at fieldpath.PathElement) (fieldpath.PathElement, bool) {
	if _, deeper := set.Children.Get(at); deeper || set.Members.Has(at) {
		return at, true
	}
	if at.FieldName != nil {
		return at, false
	}
	all := slices.Concat(slices.Collect(set.Children.All()), slices.Collect(set.Members.All()))
	i := slices.IndexFunc(all, func(e fieldpath.PathElement) bool { return at.Key != nil && hasKeys(e, *at.Key) })
	if i < 0 {
		i = slices.IndexFunc(all, func(e fieldpath.PathElement) bool { return e.Value != nil })
	}
	if i < 0 {
		return at, false
	}
	return all[i], true
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
