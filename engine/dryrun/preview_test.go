package dryrun_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/status"
)

// A preview says what a reconcile would say before it gets to a component.
func TestAPreviewSaysWhatIsWrongWithTheResource(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   status.Reason
	}{
		"nothing": {func(*unstructured.Unstructured) {}, ""},
		"a status that somebody has written": {func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"inventory": []any{map[string]any{"component": "a", "objects": []any{map[string]any{"apiVersion": "a/b/c"}}}}}
		}, status.ReasonStatusUnreadable},
		"a configuration that the package does not know": {func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"operetta.dev/config": "sise: 3"})
		}, status.ReasonInvalidConfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dryrun.New(types.NamespacedName{}, load(t, "Parent", `
config: size: int | *1
components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: size: "\(config.size)"}
`))
			ref := refOf("Parent")
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			u.SetGroupVersionKind(ref.GroupVersionKind)
			u.SetNamespace(ref.Namespace)
			u.SetName(ref.Name)
			row.change(u)
			if _, err := w.Put(u); err != nil {
				t.Fatal(err)
			}
			got, err := w.Preview(t.Context(), ref)
			if err != nil || got.Fault.Reason != row.want || (len(got.Components) == 1) != (row.want == "") {
				t.Errorf("got %v: %s, with %d components (%v)", got.Fault.Reason, got.Fault.Message, len(got.Components), err)
			}
		})
	}
}
