package rollout_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

// watching is a cluster that knows which kinds a process watches: those that it has
// got an object of.
type watching struct {
	cluster.Cluster
	t       *testing.T
	watched map[string]bool
}

func (w watching) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	w.watched[ref.Kind] = true
	return w.Cluster.GetCached(ctx, ref)
}

func (w watching) Delete(ctx context.Context, ref cluster.Ref, uid types.UID) error {
	if !w.watched[ref.Kind] {
		w.t.Errorf("%s is deleted, and nobody would notice when it is gone", ref)
	}
	return w.Cluster.Delete(ctx, ref, uid)
}

// TestProcessThatIsStartedForADeletionNoticesWhenObjectsGo: an object that a finalizer
// holds goes later, and that has to wake whoever waits for it.
func TestProcessThatIsStartedForADeletionNoticesWhenObjectsGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
components: a: objects: one: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "one"}
components: b: {dependsOn: a: {}, objects: two: {apiVersion: "v1", kind: "Secret", metadata: name: "two"}}
`)
	w.mustRun()
	w.change("Secret", "two", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/held"}) })
	for range 2 { // the second finds it on its way out
		fresh := watching{w.cluster, t, map[string]bool{}}
		result, err := rollout.Teardown(t.Context(), fresh, w.owner, w.inventory)
		if err != nil || result.Inventory.Len() != 2 || !fresh.watched["Secret"] {
			t.Errorf("error %v, %d objects left, watched are %v", err, result.Inventory.Len(), fresh.watched)
		}
	}
	w.change("Secret", "two", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	result, err := rollout.Teardown(t.Context(), watching{w.cluster, t, map[string]bool{}}, w.owner, w.inventory)
	if err != nil || result.Inventory.Len() != 0 {
		t.Errorf("error %v, %d objects left", err, result.Inventory.Len())
	}
}
