package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/packages"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
)

func TestAPinnedResourceIsReconciledByNoOtherVersionThanItsOwn(t *testing.T) {
	t.Parallel()
	served := load(t, "served", "Pinned")
	other := load(t, "other", "Pinned")
	pin := other.Digest()
	kept := map[string]bool{pin: true}
	for name, row := range map[string]struct {
		reason  string
		deleted bool
		pins    packages.Pins
		// want is the version, or nil for none, and why says that the resource says why.
		want *program.Program
		why  bool
	}{
		"at a start":                        {"nobody knows which versions there are", false, packages.Pins{Allowed: true, Pending: true}, nil, false},
		"deleted at a start":                {"another version could tear it down otherwise", true, packages.Pins{Allowed: true, Pending: true}, nil, false},
		"while it is loaded":                {"it takes some seconds", false, packages.Pins{Allowed: true, Kept: kept}, nil, false},
		"deleted while it is loaded":        {"it takes some seconds", true, packages.Pins{Allowed: true, Kept: kept}, nil, false},
		"loaded":                            {"it has its version", false, packages.Pins{Allowed: true, Kept: kept, Programs: map[string]*program.Program{pin: other}}, other, false},
		"deleted once it is loaded":         {"it is torn down by its version", true, packages.Pins{Allowed: true, Kept: kept, Programs: map[string]*program.Program{pin: other}}, other, false},
		"without a version":                 {"a person has to choose another one", false, packages.Pins{Allowed: true}, nil, true},
		"deleted without a version":         {"it must not stay for ever", true, packages.Pins{Allowed: true}, served, true},
		"deleted, and it cannot be used":    {"it must not stay for ever", true, packages.Pins{Allowed: true, Kept: kept, Unusable: map[string]string{pin: "it is spoilt"}}, served, true},
		"a version that cannot be used now": {"another one would be worse", false, packages.Pins{Allowed: true, Kept: kept, Unusable: map[string]string{pin: "it is spoilt"}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := served.GroupVersionKind()
			resources := memory.New()
			resources.Serve(kind.GroupKind(), cluster.Namespaced)
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(kind)
			u.SetNamespace("ns")
			u.SetName("one")
			u.SetFinalizers([]string{"example.com/finalizer"})
			u.SetAnnotations(map[string]string{reconcile.AnnotationRevisionPin: pin})
			if row.deleted {
				now := metav1.Now()
				u.SetDeletionTimestamp(&now)
			}
			if _, err := resources.Put("kubectl", u); err != nil {
				t.Fatal(err)
			}
			c := &packageController{reconciler: &reconcile.Reconciler{Kind: kind, Resources: resources}}
			c.program.Store(evaluate.New(served, evaluate.Options{}))
			by := map[string]*evaluate.Evaluator{}
			for digest, p := range row.pins.Programs {
				by[digest] = evaluate.New(p, evaluate.Options{})
			}
			c.pins.Store(&pinnedVersions{Pins: row.pins, by: by})
			got, err := c.choose(t.Context(), types.NamespacedName{Namespace: "ns", Name: "one"})
			if err != nil {
				t.Fatal(err)
			}
			var version *program.Program
			if got.by != nil {
				version = got.by.Program
			}
			if version != row.want || (got.why != "") != row.why {
				t.Errorf("%s: it gets a version: %v, because of %q", row.reason, version != nil, got.why)
			}
		})
	}
}
