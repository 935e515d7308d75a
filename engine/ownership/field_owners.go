package ownership

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	named "operetta.dev/engine/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// FieldSets returns the fields that each manager of an object owns, in the order of ManagedFields; nil stands for none.
func FieldSets(live *unstructured.Unstructured) []*fieldpath.Set {
	managers := ManagedFields(live)
	out := make([]*fieldpath.Set, len(managers))
	for i, m := range managers {
		out[i] = FieldSet(m)
	}
	return out
}

// ElementsOf returns the elements at the top of a set.
func ElementsOf(set *fieldpath.Set) []fieldpath.PathElement {
	return slices.Concat(slices.Collect(set.Members.All()), slices.Collect(set.Children.All()))
}

// A Share is the share that a manager has in a field.
type Share string

// The shares.
const (
	NoShare Share = "None"
	// SharesPart is for a manager of something below the field.
	SharesPart Share = "Part"
	// SharesWhole is for a manager of something around the field, that is owned without its parts. Of a map it may be all that
	// is left of what another manager has taken over.
	SharesWhole Share = "Whole"
	SharesField Share = "Field"
)

// Owns reports whether a set of fields has a field, or a whole that the field is a part of, or else only
// parts of it.
func Owns(set *fieldpath.Set, at any, path []named.Part) (owns, parts bool) {
	share := ShareOf(set, at, path)
	return share != NoShare, share == SharesPart
}

// ShareOf returns the share of a set of fields in the field at a path of an object.
func ShareOf(set *fieldpath.Set, at any, path []named.Part) Share {
	return shareOf(set, len(path), func(i int, in *fieldpath.Set) (fieldpath.PathElement, bool) {
		element, next, ok := ElementOf(in, at, path[i])
		at = next
		return element, ok
	})
}

// shareOf returns the share of a set of fields in the field at the end of some steps. step returns the element of a set that a
// step leads to.
func shareOf(set *fieldpath.Set, steps int, step func(i int, in *fieldpath.Set) (fieldpath.PathElement, bool)) Share {
	for i := range steps {
		element, ok := step(i, set)
		if !ok {
			return NoShare
		}
		below, deeper := set.Children.Get(element)
		has := set.Members.Has(element)
		switch last := i == steps-1; {
		case last && has:
			return SharesField
		case last && deeper:
			return SharesPart
		case deeper:
			set = below
		case has:
			return SharesWhole
		default:
			return NoShare
		}
	}
	if set.Empty() {
		return NoShare
	}
	return SharesPart
}

// ElementOf returns the element of a set that a part of a path leads to, and the value there.
func ElementOf(set *fieldpath.Set, at any, part named.Part) (fieldpath.PathElement, any, bool) {
	next, ok := part.Lookup(at)
	if !ok {
		return fieldpath.PathElement{}, nil, false
	}
	items, isList := at.([]any)
	if !isList {
		name := part.Name()
		return fieldpath.PathElement{FieldName: &name}, next, true
	}
	index := slices.IndexFunc(items, func(item any) bool { return value.Equals(value.NewValueInterface(item), value.NewValueInterface(next)) })
	for _, e := range ElementsOf(set) {
		if IsElement(e, next, index) {
			return e, next, true
		}
	}
	return fieldpath.PathElement{}, nil, false
}

// IsElement reports whether an element of a set means an item of a list.
func IsElement(e fieldpath.PathElement, item any, index int) bool {
	switch {
	case e.Index != nil:
		return *e.Index == index
	case e.Value != nil:
		return value.Equals(*e.Value, value.NewValueInterface(item))
	case e.Key == nil:
		return false
	}
	fields, ok := item.(map[string]any)
	for _, key := range *e.Key {
		if v, has := fields[key.Name]; !has || !value.Equals(key.Value, value.NewValueInterface(v)) {
			return false
		}
	}
	return ok
}
