package dryrun

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/patch"
	"operetta.dev/engine/program"
)

var (
	shopKind   = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}
	secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// object returns an object of the default namespace.
func object(kind schema.GroupVersionKind, name string, change func(u *unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("default")
	u.SetName(name)
	u.SetGeneration(1)
	if change != nil {
		change(u)
	}
	return u
}

// TestAnEventWakesExactlyWhomItConcerns is about the same as the watches of an operator,
// which are tested on a control plane.
func TestAnEventWakesExactlyWhomItConcerns(t *testing.T) {
	t.Parallel()
	owned := func(by string) func(u *unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{ownership.OwnerAnnotation: "Shop.example.com default/" + by})
		}
	}
	labelled := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"app": "x"}) }
	about := func(shop string, generation int64) *unstructured.Unstructured {
		return object(patch.Kind, "p", func(u *unstructured.Unstructured) {
			u.SetGeneration(generation)
			u.Object["spec"] = map[string]any{"target": map[string]any{"apiVersion": "example.com/v1", "kind": "Shop", "name": shop}}
		})
	}
	o := operator{kind: shopKind, reads: map[types.NamespacedName][]program.Input{
		{Namespace: "default", Name: "by-name"}:  {{Kind: secretKind, Namespace: "default", Object: "token"}},
		{Namespace: "default", Name: "by-label"}: {{Kind: secretKind, Namespace: "default", Selector: map[string]string{"app": "x"}}},
	}}
	for name, row := range map[string]struct {
		reason        string
		before, after *unstructured.Unstructured
		want          []string
	}{
		"a new resource":               {"it is to be rolled out", nil, object(shopKind, "a", nil), []string{"a"}},
		"its spec":                     {"it has another generation", object(shopKind, "a", nil), object(shopKind, "a", func(u *unstructured.Unstructured) { u.SetGeneration(2) }), []string{"a"}},
		"its status":                   {"that is the engine's own", object(shopKind, "a", nil), object(shopKind, "a", func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"phase": "Ready"} }), nil},
		"an object of it":              {"by its annotation", nil, object(secretKind, "s", owned("a")), []string{"a"}},
		"an object that changes hands": {"both are concerned", object(secretKind, "s", owned("a")), object(secretKind, "s", owned("b")), []string{"a", "b"}},
		"an object of nobody":          {"nobody reads it either", nil, object(secretKind, "s", nil), nil},
		"an input by its name":         {"it is read", nil, object(secretKind, "token", nil), []string{"by-name"}},
		"an input by its labels":       {"it is read", nil, object(secretKind, "s", labelled), []string{"by-label"}},
		"an input that loses them":     {"it was read", object(secretKind, "s", labelled), object(secretKind, "s", nil), []string{"by-label"}},
		"another kind of that name":    {"it is not read", nil, object(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "token", labelled), nil},
		"a patch":                      {"it changes what is rendered", nil, about("a", 1), []string{"a"}},
		"a patch that moves":           {"it is taken back there", about("a", 1), about("b", 2), []string{"a", "b"}},
		"what came of a patch":         {"that is the engine's own", about("a", 1), about("a", 1), nil},
		"another package's resource":   {"it is served by another operator", nil, object(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Store"}, "a", nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verb := cluster.Updated
			if row.before == nil {
				verb = cluster.Created
			}
			var got []string
			for _, key := range o.concerned(cluster.Event{Change: cluster.Change{Verb: verb, Ref: cluster.RefOf(row.after)}, Before: row.before, Object: row.after}) {
				got = append(got, key.Name)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
