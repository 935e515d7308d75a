package plan

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// lostField returns a field of the manifest that the engine does not own in the
// live object, if there is one.
//
// The engine needs no schema for that: managedFields say of each list whether it
// is owned as a whole or item by item, and by which keys.
func lostField(want Desired, live *unstructured.Unstructured) (string, bool) {
	manifest := want.Manifest
	owned := ownedFields(live, operationsOf(want.Policy)...)
	if owned == nil {
		return "every field", true
	}
	for _, key := range slices.Sorted(maps.Keys(manifest.Object)) {
		switch key {
		case "apiVersion", "kind":
			continue // identity, never in managedFields
		case "metadata":
			meta, _ := manifest.Object[key].(map[string]any)
			if path, lost := lostInMetadata(meta, owned); lost {
				return path, true
			}
		default:
			if path, lost := lostIn(manifest.Object[key], fieldpath.PathElement{FieldName: &key}, owned); lost {
				return path, true
			}
		}
	}
	return "", false
}

// lostInMetadata leaves out what the API server does not track.
func lostInMetadata(meta map[string]any, owned *fieldpath.Set) (string, bool) {
	name := "metadata"
	child, ok := owned.Children.Get(fieldpath.PathElement{FieldName: &name})
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if key == "name" || key == "namespace" || key == "uid" {
			continue
		}
		if !ok {
			return "metadata." + key, true
		}
		if path, lost := lostIn(meta[key], fieldpath.PathElement{FieldName: &key}, child); lost {
			return "metadata." + path, true
		}
	}
	return "", false
}

// operationsOf returns how an object is written, which is how its fields are owned.
// One that is replaced was created by an apply, and a replacement owns what it changed.
func operationsOf(p program.Policy) []metav1.ManagedFieldsOperationType {
	if p.Apply == "replace" {
		return []metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate}
	}
	return []metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply}
}

// ownedFields returns the fields that the engine owns by some operations, or nil.
func ownedFields(live *unstructured.Unstructured, operations ...metav1.ManagedFieldsOperationType) *fieldpath.Set {
	var out *fieldpath.Set
	for _, m := range live.GetManagedFields() {
		if m.Manager != cluster.FieldManager || !slices.Contains(operations, m.Operation) || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if set.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())) != nil {
			continue
		}
		if out == nil {
			out = set
		} else {
			out = out.Union(set)
		}
	}
	return out
}

// Drops reports whether an apply of the engine that leaves a reference to an owner out
// takes it away: the engine has applied it, and nobody else has written it.
func Drops(live *unstructured.Unstructured, owner types.UID) bool {
	path := fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(owner)))
	applied := false
	for _, m := range live.GetManagedFields() {
		set := &fieldpath.Set{}
		if m.FieldsV1 == nil || set.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())) != nil || !set.Has(path) {
			continue
		}
		if m.Manager != cluster.FieldManager || m.Operation != metav1.ManagedFieldsOperationApply {
			return false
		}
		applied = true
	}
	return applied
}

// lostIn looks for a lost field in the value at one element of a set.
func lostIn(v any, at fieldpath.PathElement, owned *fieldpath.Set) (string, bool) {
	child, below := owned.Children.Get(at)
	name := elementText(at)
	switch v := v.(type) {
	case nil:
		return "", false // null asks for the field's absence
	case map[string]any:
		if len(v) == 0 {
			return "", false // the API server may drop what is empty
		}
		if !below {
			return name, !owned.Members.Has(at)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path, lost := lostIn(v[key], fieldpath.PathElement{FieldName: &key}, child); lost {
				return join(name, path), true
			}
		}
		return "", false
	case []any:
		if len(v) == 0 {
			return "", false
		}
		if !below {
			return name, !owned.Members.Has(at)
		}
		return lostInList(name, v, child)
	default:
		return name, !owned.Members.Has(at)
	}
}

// lostInList looks for a lost field in a list that is owned item by item.
func lostInList(name string, items []any, owned *fieldpath.Set) (string, bool) {
	for i, item := range items {
		at, ok := elementOf(item, owned)
		if !ok {
			return fmt.Sprintf("%s[%d]", name, i), true
		}
		if at.Value != nil {
			continue // an item of a set has nothing below it
		}
		if path, lost := lostIn(item, at, owned); lost {
			return join(name, path), true
		}
	}
	return "", false
}

// elementOf finds an item of a list among the owned ones: by its value in a set,
// by its keys in a map. A key that the item leaves out was defaulted (a port's
// protocol), so only those that it has must match.
func elementOf(item any, owned *fieldpath.Set) (found fieldpath.PathElement, ok bool) {
	match := func(at fieldpath.PathElement) {
		if ok {
			return
		}
		switch {
		case at.Value != nil:
			ok = value.Equals(*at.Value, value.NewValueInterface(item))
		case at.Key != nil:
			ok = keysMatch(item, *at.Key)
		}
		if ok {
			found = at
		}
	}
	owned.Members.Iterate(match)
	owned.Children.Iterate(match)
	return found, ok
}

func keysMatch(item any, keys value.FieldList) bool {
	m, isMap := item.(map[string]any)
	if !isMap {
		return false
	}
	matched := false
	for _, key := range keys {
		v, has := m[key.Name]
		if !has {
			continue
		}
		if !value.Equals(key.Value, value.NewValueInterface(v)) {
			return false
		}
		matched = true
	}
	return matched
}

func elementText(at fieldpath.PathElement) string {
	if at.FieldName != nil {
		return *at.FieldName
	}
	return at.String()
}

func join(a, b string) string {
	if b != "" && b[0] == '[' {
		return a + b
	}
	return a + "." + b
}
