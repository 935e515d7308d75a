package reconcile_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/patch"
)

// TestAttackPatch plays patches of somebody who has no rights but to write them.
func TestAttackPatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change map[string]any
		reason string
	}{
		"privileged pod": {map[string]any{"strategicMerge": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"hostPID": true, "serviceAccountName": "admin-sa",
		}}}}}, "NotPatchable"},
		"operation that made the library panic": {map[string]any{"json6902": []any{map[string]any{"op": "test", "path": ""}}}, "Invalid"},
		"mark": {map[string]any{"strategicMerge": map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			"operetta.dev/delete": "orphan",
		}}}}, "Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c, l := patchable(t)
			tc.change["address"] = "web.deployment"
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"target":  map[string]any{"apiVersion": "example.com/v1", "kind": "Shop", "name": "my"},
				"patches": []any{tc.change},
			}}}
			u.SetGroupVersionKind(patch.Kind)
			u.SetNamespace(shopKey.Namespace)
			u.SetName("evil")
			if _, err := c.Put("person", u); err != nil {
				t.Fatal(err)
			}
			before := objects(t, c.Cluster, "Deployment")[0].GetResourceVersion()
			putPatch(t, c.Cluster, "good", "my", "web.service", map[string]any{"spec": map[string]any{"type": "NodePort"}})
			step(t, p, c, l, 1)
			expectPatch(t, c.Cluster, "evil", tc.reason)
			expectPatch(t, c.Cluster, "good", "Applied")
			if after := objects(t, c.Cluster, "Deployment")[0].GetResourceVersion(); after != before {
				t.Error("the Deployment was written")
			}
			if writes := step(t, p, c, l, 3); len(writes) > 0 {
				t.Errorf("at rest there are writes: %q", writes)
			}
		})
	}
}
