package ownership

import (
	"bytes"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Lost returns a field of a live object that somebody has taken from the engine, and
// the field manager that has it: "" when that is not known, as when it was removed.
func Lost(want Desired, live *unstructured.Unstructured) (field, manager string) {
	path, lost := lostField(want, live)
	if !lost {
		return "", ""
	}
	return textOf(path), managerOf(live, path)
}

// managerOf returns the other field manager that owns a field, or else the last one that
// has written the object.
func managerOf(live *unstructured.Unstructured, path fieldpath.Path) string {
	var last metav1.Time
	name := ""
	for _, m := range live.GetManagedFields() {
		if m.Manager == cluster.FieldManager || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if set.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())) == nil && owns(set, path) {
			return m.Manager
		}
		if m.Time != nil && (name == "" || last.Before(m.Time)) {
			name, last = m.Manager, *m.Time
		}
	}
	return name
}

// owns reports whether a set has a field, or the list or map that it is part of as a
// whole.
func owns(set *fieldpath.Set, path fieldpath.Path) bool {
	for _, at := range path {
		deeper, ok := set.Children.Get(at)
		if !ok {
			return set.Members.Has(at)
		}
		set = deeper
	}
	return len(path) > 0
}

// Differs returns a field of a manifest that is another one in a live object, or "".
// Defaults of the API server count for nothing: only what is rendered is compared.
func Differs(want Desired, live *unstructured.Unstructured) string {
	var look func(path fieldpath.Path, wanted, is any) fieldpath.Path
	look = func(path fieldpath.Path, wanted, is any) fieldpath.Path {
		m, isMap := wanted.(map[string]any)
		have, _ := is.(map[string]any)
		if !isMap {
			if equality.Semantic.DeepEqual(wanted, is) {
				return nil
			}
			return path
		}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if found := look(append(slices.Clone(path), fieldpath.PathElement{FieldName: &key}), m[key], have[key]); found != nil {
				return found
			}
		}
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(want.Manifest.Object)) {
		if key == "apiVersion" || key == "kind" || key == "metadata" {
			continue // of the metadata, the marks always differ
		}
		if found := look(fieldpath.Path{{FieldName: &key}}, want.Manifest.Object[key], live.Object[key]); found != nil {
			return textOf(found)
		}
	}
	return ""
}
