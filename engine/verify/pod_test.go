package verify_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/verify"
)

func TestTheNewestPodThatIsNotReadyIsShown(t *testing.T) {
	t.Parallel()
	pod := func(name, created, ready string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "creationTimestamp": created},
			"status": map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": ready}}},
		}}
	}
	const old, young = "2026-11-23T10:00:00Z", "2026-11-23T11:00:00Z"
	for name, row := range map[string]struct {
		reason string
		pods   []*unstructured.Unstructured
		want   string
	}{
		"none":            {"there is nothing to show", nil, ""},
		"all ready":       {"nothing is wrong", []*unstructured.Unstructured{pod("a", old, "True"), pod("b", young, "True")}, ""},
		"one":             {"the newest of all is ready", []*unstructured.Unstructured{pod("a", old, "False"), pod("b", young, "True")}, "a"},
		"an update":       {"the new one does not start", []*unstructured.Unstructured{pod("a", old, "False"), pod("b", young, "False")}, "b"},
		"of the same age": {"the text must not change with the order", []*unstructured.Unstructured{pod("b", old, "False"), pod("a", old, "False")}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if p := verify.NewestNotReadyPod(row.pods); p != nil {
				got = p.GetName()
			}
			if got != row.want {
				t.Errorf("it is %q, not %q: %s", got, row.want, row.reason)
			}
		})
	}
}
