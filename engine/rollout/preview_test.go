package rollout_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestAPreviewAddsNoFailure shows that what a preview cannot tell is asked and reported
// once, by the rollout itself.
func TestAPreviewAddsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: child: objects: o: {apiVersion: _own, kind: "Child", metadata: name: "main"}
components: more: objects: {if cr.spec.size > 1 {o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "more"}}}
`)
	kind := w.site.Kind("Child")
	w.site.Serve(kind)
	var answer error
	w.subsystem = func(_ context.Context, k schema.GroupKind) (bool, error) {
		if k != kind.GroupKind() {
			return false, nil
		}
		return true, answer
	}
	w.mustRun()
	w.change("Child", "main", func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "observedGeneration": u.GetGeneration()}}}
	})

	w.spec["size"], answer = int64(2), errors.New("the API server is away")
	_, err := w.run()
	if err == nil || strings.Count(err.Error(), answer.Error()) != 1 {
		t.Errorf("the rollout errors with %v, want that of one question", err)
	}
}
