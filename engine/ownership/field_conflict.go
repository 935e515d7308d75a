package ownership

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// LostField returns a field of a live object that the engine has lost to another field manager, and that
// manager. The manager is "" if it is unknown, as when the field was removed.
func LostField(want Desired, live *unstructured.Unstructured) (field, manager string) {
	path, lost := driftedField(want, live)
	if !lost {
		return "", ""
	}
	return textOf(path), managerOf(live, path)
}

// managerOf returns the other field manager that owns a field, or else the one that wrote the
// object last.
func managerOf(live *unstructured.Unstructured, path fieldpath.Path) string {
	var last metav1.Time
	name := ""
	for _, m := range ManagedFields(live) {
		if m.Manager == cluster.FieldManager || m.Subresource != "" {
			continue
		}
		if set := FieldSet(m); set != nil && owns(set, path) {
			return m.Manager
		}
		if m.Time != nil && last.Before(m.Time) {
			name, last = m.Manager, *m.Time
		}
	}
	return name
}

// owns reports whether a set has a field, or the whole list or map that contains it.
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

// DifferingField returns a field of a manifest that has another value in a live object, or "". It compares
// only what is rendered, so that defaults of the API server count for nothing, and no metadata, of
// which the marks always differ.
func DifferingField(want Desired, live *unstructured.Unstructured) string {
	if path := firstDifference(nil, without(want.Manifest.Object, "apiVersion", "kind", "metadata"), live.Object); path != nil {
		return textOf(path)
	}
	return ""
}

func firstDifference(at fieldpath.Path, wanted, is any) fieldpath.Path {
	m, isMap := wanted.(map[string]any)
	if !isMap {
		if equality.Semantic.DeepEqual(wanted, is) {
			return nil
		}
		return at
	}
	have, _ := is.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if found := firstDifference(append(slices.Clone(at), fieldpath.PathElement{FieldName: &key}), m[key], have[key]); found != nil {
			return found
		}
	}
	return nil
}
