package fieldpath_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/fieldpath"
)

func object() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "x"}},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "one", "port": int64(80)},
			map[string]any{"name": `t"]wo`, "port": int64(81)},
		}},
	}
}

func TestAPathLeadsToItsField(t *testing.T) {
	t.Parallel()
	for path, row := range map[string]struct {
		reason string
		want   any
	}{
		"spec.containers[1].port":             {"an index", int64(81)},
		".spec.containers[1].port":            {"a dot before the first", int64(81)},
		`spec.containers[name="one"].port`:    {"a key", int64(80)},
		`spec.containers[name="t\"]wo"].port`: {"quotes within a key", nil},
		"spec.containers[port=81].port":       {"a key that is a number", int64(81)},
		"metadata.labels[a.b/c]":              {"a key of a map", "x"},
		"spec.containers[9].port":             {"beyond the list", nil},
		"spec.containers[-1].port":            {"no index", nil},
		"spec.none.more":                      {"a field that is not there", nil},
		"spec..containers":                    {"two dots end what is understood", object()["spec"]},
		"spec.containers[1":                   {"a bracket that is not closed", object()["spec"].(map[string]any)["containers"]},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			var at any = object()
			for _, part := range fieldpath.Parse(path) {
				at, _ = part.Lookup(at)
			}
			if diff := cmp.Diff(row.want, at); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

func TestAFieldIsRemovedAndAnElementStays(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		`spec.containers[name="one"].port`: true,
		"spec.containers[0]":               false,
		"spec.containers":                  true,
		"spec.none":                        false,
		"":                                 false,
	} {
		o := object()
		if got := fieldpath.Remove(o, path); got != want {
			t.Errorf("%q is removed: %t, want %t", path, got, want)
		}
		if again := fieldpath.Remove(o, path); again {
			t.Errorf("%q is removed twice", path)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`spec.containers[name="main",protocol="TCP"].ports[0]`)
	f.Add("[")
	f.Add(`a[="`)
	f.Fuzz(func(_ *testing.T, path string) {
		fieldpath.Remove(object(), path) // it neither panics nor hangs
	})
}
