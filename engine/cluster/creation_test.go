package cluster

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// past is a client of an API server that has one object as it was, and counts updates.
type past struct {
	client.Client
	was     *unstructured.Unstructured
	updates int
}

func (p *past) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{*p.was}
	return nil
}

func (p *past) Update(context.Context, client.Object, ...client.UpdateOption) error {
	p.updates++
	return nil
}

func TestOnlyWhatIsSomebodyElsesIsPutBack(t *testing.T) {
	t.Parallel()
	object := func(version, owner, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": value}, "metadata": map[string]any{
				"name": "x", "namespace": "default", "uid": "1", "resourceVersion": version, "annotations": map[string]any{"operetta.dev/owner": owner},
			},
		}}
	}
	for name, row := range map[string]struct {
		reason string
		was    *unstructured.Unstructured
		want   int
	}{
		"of another owner": {"it was taken from that", object("6", "b", "theirs"), 1},
		"of the same":      {"its last write is not the one that found it there", object("6", "a", "older"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &past{was: row.was}
			err := (&Live{Direct: c}).restoreTaken(t.Context(), object("7", "a", "ours"))
			if !apierrors.IsAlreadyExists(err) {
				t.Errorf("it errors with %v", err)
			}
			if c.updates != row.want {
				t.Errorf("%s: it was put back %d times, want %d", row.reason, c.updates, row.want)
			}
		})
	}
}
