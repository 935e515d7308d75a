package reconcile_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/reconcile"
)

// sharedStore is a store whose resources have a condition and a field of another
// manager's in their status, as an API server shows them: with who owns what.
type sharedStore struct {
	cluster.Cluster
	applied map[string]any
	writes  int
}

// theirCondition and theirField are what another manager has written.
var theirCondition = map[string]any{"type": "Audited", "status": "True", "reason": "Done", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}

const theirField = "auditor"

// Get implements cluster.Cluster.
func (s *sharedStore) GetCached(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	cr, err := s.Cluster.GetCached(ctx, ref)
	if cr == nil || err != nil {
		return cr, err
	}
	all, _, _ := unstructured.NestedMap(cr.Object, "status")
	if all == nil {
		all = map[string]any{}
	}
	conditions, _ := all["conditions"].([]any)
	all["conditions"] = append([]any{theirCondition}, conditions...)
	all[theirField] = "somebody"
	cr.Object["status"] = all
	owned := map[string]any{}
	for field := range s.applied {
		owned["f:"+field] = map[string]any{}
	}
	b, err := json.Marshal(map[string]any{"f:status": owned})
	if err != nil {
		return nil, err
	}
	cr.SetManagedFields(append(cr.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: cluster.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(b)),
	}))
	return cr, nil
}

// ApplyStatus implements cluster.Cluster.
func (s *sharedStore) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	s.applied, _, _ = unstructured.NestedMap(u.Object, "status")
	s.writes++
	return s.Cluster.ApplyStatus(ctx, u)
}

func TestWhatOthersWriteIntoAStatusIsTheirs(t *testing.T) {
	t.Parallel()
	b := newBench(t, guarded+`status: url: "http://web"
`)
	store := &sharedStore{Cluster: b.reconciler.Resources}
	b.reconciler.Resources = store
	quiet := func(when string) {
		t.Helper()
		b.rest()
		completeJobs(t, b.memory)
		b.rest()
		written := store.writes
		for range 10 {
			if _, err := b.step(); err != nil {
				t.Fatal(err)
			}
		}
		if n := store.writes - written; n != 0 {
			t.Errorf("%s: %d writes of the status at rest", when, n)
		}
		if store.applied[theirField] != nil {
			t.Errorf("%s: the engine has taken over a field of another manager's", when)
		}
		for _, c := range store.applied["conditions"].([]any) {
			if m, _ := c.(map[string]any); m["type"] == theirCondition["type"] {
				t.Errorf("%s: the engine has taken over a condition of another manager's", when)
			}
		}
		if diff := cmp.Diff("http://web", store.applied["url"]); diff != "" {
			t.Errorf("%s: the author's field (-want +got):\n%s", when, diff)
		}
	}
	quiet("ready")
	annotate(t, b.memory, reconcile.AnnotationPaused, "true")
	quiet("paused")
	annotate(t, b.memory, reconcile.AnnotationPaused, "false")
	web := b.find("ConfigMap", "web")
	web.SetFinalizers([]string{"example.com/backup"})
	b.put(web.Object)
	quiet("held by a finalizer")
	act(t, b.memory, deleted)
	quiet("being deleted")
	b.expect("the object holds it", "False Deleting", "example.com/backup")
}
