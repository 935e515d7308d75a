package ownership_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
)

// A rollout edits the inventory once for each object, so an edit must not copy the others.
func TestAnEditCopiesOnlyTheComponentThatChanges(t *testing.T) {
	var inv ownership.Inventory
	for i := range 3 {
		inv = append(inv, ownership.Group{Component: fmt.Sprintf("c%d", i), Objects: []ownership.Entry{
			{Object: "a", APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("a%d", i)},
			{Object: "b", APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("b%d", i)},
		}})
	}
	before := inv.Encode()
	manifest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b1", "namespace": "ns"}}}
	d := ownership.Desired{Component: "c1", Object: "b", Digest: "new", Manifest: manifest}

	got := inv.WithDigests("ns", d)

	if diff := cmp.Diff(before, inv.Encode()); diff != "" {
		t.Errorf("the edited inventory is changed:\n%s", diff)
	}
	for i, g := range got {
		if shared := &g.Objects[0] == &inv[i].Objects[0]; shared != (g.Component != "c1") {
			t.Errorf("component %s: its objects are shared: %t", g.Component, shared)
		}
	}
	if e := got[1].Objects[1]; e.Digest != "new" {
		t.Errorf("digest %q of the applied object", e.Digest)
	}
	if again := got.WithDigests("ns", d); &again[1].Objects[0] != &got[1].Objects[0] {
		t.Error("an edit without a change copies objects")
	}
}
