package why

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/ownership"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// owners returns who owns a field of a live object.
func owners(live *unstructured.Unstructured, path []fieldpath.Part) []Owner {
	var out []Owner
	sets := ownership.FieldSets(live)
	for i, m := range ownership.ManagedFields(live) {
		if sets[i] == nil {
			continue
		}
		owns, parts := ownership.Owns(sets[i], live.Object, path)
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
	sets, at := ownership.FieldSets(live), any(live.Object)
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
			if e, _, has := ownership.ElementOf(set, at, out[i]); has {
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
		for _, e := range ownership.ElementsOf(set) {
			if e.Key == nil || !ownership.IsElement(e, like, -1) {
				continue
			}
			if i := slices.IndexFunc(items, func(item any) bool { return ownership.IsElement(e, item, -1) }); i >= 0 {
				return i, true
			}
		}
	}
	return 0, false
}
