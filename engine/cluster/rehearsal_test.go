package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

func TestARehearsalReadsWhatItWouldHaveWritten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	// The writes of this one would be dry runs; that they are made shows which.
	r := &cluster.Rehearsal{Cluster: cluster.NewMemory()}
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"},
	}}
	made, err := r.Apply(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	ref := cluster.RefOf(want)
	if got, err := r.Get(ctx, ref); err != nil || got != made {
		t.Errorf("got %v, error %v, want what the apply returned", got, err)
	}
	want.SetUID(made.GetUID())
	if _, err := r.Apply(ctx, want); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(ctx, ref, made.GetUID()); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(ctx, ref); err != nil || got != nil {
		t.Errorf("got %v, error %v, want it gone", got, err)
	}
	var changes []string
	for _, c := range r.Changes() {
		changes = append(changes, c.String())
	}
	if diff := cmp.Diff([]string{"create ConfigMap default/a", "update ConfigMap default/a", "delete ConfigMap default/a"}, changes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
