package why

import (
	"bytes"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/ownership"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// fieldSets returns the fields that each manager of an object owns; nil stands for none.
func fieldSets(live *unstructured.Unstructured) []*smd.Set {
	managers := ownership.ManagedFields(live)
	out := make([]*smd.Set, len(managers))
	for i, m := range managers {
		set := &smd.Set{}
		if m.FieldsV1 != nil && set.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())) == nil {
			out[i] = set
		}
	}
	return out
}

// owners returns who owns a field of a live object.
func owners(live *unstructured.Unstructured, path []fieldpath.Part) []Owner {
	var out []Owner
	sets := fieldSets(live)
	for i, m := range ownership.ManagedFields(live) {
		if sets[i] == nil {
			continue
		}
		owns, parts := owned(sets[i], live.Object, path)
		if !owns {
			continue
		}
		o := Owner{Manager: m.Manager, Operation: string(m.Operation), Subresource: m.Subresource, Parts: parts}
		if m.Time != nil {
			at := m.Time.UTC()
			o.Time = &at
		}
		out = append(out, o)
	}
	return out
}

// aligned returns the path in a live object of what is at a path in a manifest: in a list whose items have
// keys, the same item may have another index.
func aligned(live *unstructured.Unstructured, manifest any, path []fieldpath.Part) []fieldpath.Part {
	out := slices.Clone(path)
	sets, at := fieldSets(live), any(live.Object)
	for i, part := range path {
		want, written := part.Lookup(manifest)
		items, isList := at.([]any)
		if _, isIndex := part.Index(); written && isList && isIndex {
			if index, ok := sameItem(sets, items, want); ok {
				out[i] = fieldpath.Part{Element: strconv.Itoa(index)}
			}
		}
		next, ok := out[i].Lookup(at)
		if !ok {
			return out
		}
		for n, set := range sets {
			sets[n] = nil
			if set == nil {
				continue
			}
			if e, _, has := elementOf(set, at, out[i]); has {
				sets[n], _ = set.Children.Get(e)
			}
		}
		manifest, at = want, next
	}
	return out
}

// sameItem returns the index of the item that has the keys of another one, by the keys that managers know.
func sameItem(sets []*smd.Set, items []any, like any) (int, bool) {
	for _, set := range sets {
		if set == nil {
			continue
		}
		for _, e := range elementsOf(set) {
			if e.Key == nil || !isElement(e, like, -1) {
				continue
			}
			if i := slices.IndexFunc(items, func(item any) bool { return isElement(e, item, -1) }); i >= 0 {
				return i, true
			}
		}
	}
	return 0, false
}

// elementsOf returns the elements at the top of a set.
func elementsOf(set *smd.Set) []smd.PathElement {
	return slices.Concat(slices.Collect(set.Members.All()), slices.Collect(set.Children.All()))
}

// owned reports whether a set of fields has a field, or a whole that the field is a part of, or else only
// parts of it.
func owned(set *smd.Set, at any, path []fieldpath.Part) (owns, parts bool) {
	for i, part := range path {
		element, next, ok := elementOf(set, at, part)
		if !ok {
			return false, false
		}
		below, deeper := set.Children.Get(element)
		has := set.Members.Has(element)
		switch last := i == len(path)-1; {
		case last:
			return has || deeper, !has
		case deeper:
			set, at = below, next
		default:
			// What is owned without parts is owned as a whole.
			return has, false
		}
	}
	return !set.Empty(), true
}

// elementOf returns the element of a set that a part of a path leads to, and the value there.
func elementOf(set *smd.Set, at any, part fieldpath.Part) (smd.PathElement, any, bool) {
	next, ok := part.Lookup(at)
	if !ok {
		return smd.PathElement{}, nil, false
	}
	items, isList := at.([]any)
	if !isList {
		name := part.Name()
		return smd.PathElement{FieldName: &name}, next, true
	}
	index := slices.IndexFunc(items, func(item any) bool { return value.Equals(value.NewValueInterface(item), value.NewValueInterface(next)) })
	for _, e := range elementsOf(set) {
		if isElement(e, next, index) {
			return e, next, true
		}
	}
	return smd.PathElement{}, nil, false
}

// isElement reports whether an element of a set means an item of a list.
func isElement(e smd.PathElement, item any, index int) bool {
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
		if v, has := fields[key.Name]; !ok || !has || !value.Equals(key.Value, value.NewValueInterface(v)) {
			return false
		}
	}
	return ok
}
