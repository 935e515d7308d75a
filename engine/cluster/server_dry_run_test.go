package cluster_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/test/clustertest"
)

func TestADryRunReadsWhatItWouldHaveWritten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	// The writes of this one would be dry runs; that they are made shows which.
	r := &cluster.ServerDryRun{Cluster: memory.New()}
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"},
	}}
	made, err := r.Apply(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	ref := cluster.RefOf(want)
	if got, err := r.GetCached(ctx, ref); err != nil || got != made {
		t.Errorf("got %v, error %v, want what the apply returned", got, err)
	}
	want.SetUID(made.GetUID())
	if _, err := r.Apply(ctx, want); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(ctx, ref, made.GetUID()); err != nil {
		t.Fatal(err)
	}
	if got, err := r.GetLive(ctx, ref); err != nil || got != nil {
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

// dryRuns is a cluster whose writes are dry runs.
type dryRuns struct{ *memory.Cluster }

// Apply implements cluster.Cluster: on a copy of what is there.
func (d dryRuns) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	elsewhere := memory.New()
	elsewhere.EnableValidation()
	elsewhere.RequireNamespaces("default")
	for _, there := range d.Objects() {
		if _, err := elsewhere.Restore("somebody", there); err != nil {
			return nil, err
		}
	}
	return elsewhere.Apply(ctx, u)
}

// HandOver implements cluster.Cluster.
func (dryRuns) HandOver(context.Context, *unstructured.Unstructured) error { return nil }

func TestADryRunShowsEachObjectBeforeAndAfter(t *testing.T) {
	t.Parallel()
	memory := memory.New()
	r := &cluster.ServerDryRun{Cluster: dryRuns{memory}}
	there := given(t, deployment)
	there, err := memory.Apply(t.Context(), there)
	if err != nil {
		t.Fatal(err)
	}
	fields := given(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}}`)
	fields.SetUID(there.GetUID())
	if err := r.HandOver(t.Context(), fields); err != nil {
		t.Fatal(err)
	}
	want := given(t, deployment)
	unstructured.RemoveNestedField(want.Object, "spec", "replicas")
	set(t, want, int64(7), "spec", "minReadySeconds")
	want.SetUID(there.GetUID())
	if _, err := r.Apply(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	e := r.Changes()[0]
	if got := []any{e.String(), field(e.Before, "spec", "minReadySeconds"), field(e.Object, "spec", "minReadySeconds")}; !cmp.Equal(got, []any{"update Deployment default/web", nil, int64(7)}) {
		t.Errorf("got %v", got)
	}
	if got := field(e.Object, "spec", "replicas"); got != int64(3) {
		t.Errorf("%v replicas, want those that were relinquished, which was a dry run as well", got)
	}
}

func TestADryRunKnowsTheNamespacesThatItWouldHaveCreated(t *testing.T) {
	t.Parallel()
	r := &cluster.ServerDryRun{Cluster: dryRuns{memory.New()}}
	there, wrong := given(t, configMap), given(t, configMap)
	there.SetNamespace("new")
	wrong.SetNamespace("new")
	set(t, wrong, "v", "data", "a key")
	if _, err := r.Apply(t.Context(), there); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want the namespace not to be there", err)
	}
	ns := given(t, `{apiVersion: v1, kind: Namespace, metadata: {name: new}}`)
	ns.SetNamespace("")
	if _, err := r.Apply(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(t.Context(), wrong); !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want it to be invalid all the same", err)
	}
	if out, err := r.Apply(t.Context(), there); err != nil || out.GetName() != there.GetName() {
		t.Errorf("got %v and %v", out, err)
	}
}

// given returns an object in the default namespace.
func given(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, &clustertest.Site{Namespace: "default"}, text)
}
