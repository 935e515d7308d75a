package ownership

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/program"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// driftedField returns the path of a field of the manifest that the engine does not own in the live
// object, if there is one. A path without elements stands for all fields.
//
// This needs no schema: managedFields tell of each list whether it is owned as a whole or item
// by item, and by which keys.
func driftedField(want Desired, live *unstructured.Unstructured) (fieldpath.Path, bool) {
	key, known := syncKeyOf(want, live)
	if _, found := inSync.Get(key); known && found {
		return nil, false
	}
	path, lost := findDrift(want, live)
	if known && !lost {
		inSync.Add(key, nil)
	}
	return path, lost
}

func findDrift(want Desired, live *unstructured.Unstructured) (fieldpath.Path, bool) {
	owned := ownedFields(live, operationsOf(want.Policy)...)
	if owned == nil {
		return nil, true
	}
	tracked := maps.Clone(want.Manifest.Object)
	meta, _ := tracked["metadata"].(map[string]any)
	tracked["metadata"] = without(meta, "name", "namespace", "uid")
	tracked = without(tracked, "apiVersion", "kind")
	for _, key := range slices.Sorted(maps.Keys(tracked)) {
		if path, lost := lostIn(tracked[key], fieldpath.PathElement{FieldName: &key}, owned); lost {
			return path, true
		}
	}
	return nil, false
}

// without returns a copy of a map without some keys, such as the identity of an object, which is
// never in managedFields.
func without(m map[string]any, keys ...string) map[string]any {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(key string, _ any) bool { return slices.Contains(keys, key) })
	return out
}

// operationsOf returns the operations by which the engine owns the fields of an object. An object
// with policy replace was created by an apply, and an update owns only what it changed.
func operationsOf(p program.Policy) []metav1.ManagedFieldsOperationType {
	if p.Apply == "replace" {
		return []metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate}
	}
	return []metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply}
}

// ApplyRemovesOwnerReference reports whether an apply without a reference to an owner removes that reference: only
// the engine has applied it.
func ApplyRemovesOwnerReference(live *unstructured.Unstructured, owner types.UID) bool {
	path := fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(owner)))
	applied := false
	for _, m := range ManagedFields(live) {
		if set := FieldSet(m); set == nil || !set.Has(path) {
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
func lostIn(v any, at fieldpath.PathElement, owned *fieldpath.Set) (fieldpath.Path, bool) {
	child, deeper := owned.Children.Get(at)
	here := fieldpath.Path{at}
	switch v := v.(type) {
	case nil:
		return nil, false // null asks for the field's absence
	case map[string]any:
		if len(v) == 0 {
			return nil, false // the API server may drop what is empty
		}
		if !deeper {
			return here, !owned.Members.Has(at)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path, lost := lostIn(v[key], fieldpath.PathElement{FieldName: &key}, child); lost {
				return below(at, path), true
			}
		}
		return nil, false
	case []any:
		if len(v) == 0 {
			return nil, false
		}
		if !deeper {
			return here, !owned.Members.Has(at)
		}
		path, lost := lostInList(v, child)
		return below(at, path), lost
	default:
		return here, !owned.Members.Has(at)
	}
}

// lostInList looks for a lost field in a list that is owned item by item.
func lostInList(items []any, owned *fieldpath.Set) (fieldpath.Path, bool) {
	for i, item := range items {
		at, ok := elementOf(item, owned)
		if !ok {
			return fieldpath.Path{{Index: &i}}, true
		}
		if path, lost := lostIn(item, at, owned); lost {
			return path, true
		}
	}
	return nil, false
}

// below returns a path with an element in front.
func below(at fieldpath.PathElement, path fieldpath.Path) fieldpath.Path {
	return append(fieldpath.Path{at}, path...)
}

// elementOf finds an item of a list among the owned ones: by value in a set, by keys in a map. The
// API server defaults a key that the item leaves out, such as the protocol of a port, so only
// the keys that the item has must match.
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

// textOf returns a path as a person writes it: spec.ports[name="http"].port.
func textOf(path fieldpath.Path) string {
	var b strings.Builder
	for i, at := range path {
		switch {
		case at.FieldName == nil:
			b.WriteString(at.String())
		case i == 0:
			b.WriteString(*at.FieldName)
		default:
			b.WriteString("." + *at.FieldName)
		}
	}
	if b.Len() == 0 {
		return "every field"
	}
	return b.String()
}
