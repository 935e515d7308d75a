package cluster_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  template:
    spec:
      containers:
      - {name: a, image: "a:1"}
`

func TestMemoryAppliesLikeTheAPIServer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := cluster.NewMemory()
	first, err := m.Apply(ctx, parse(t, deployment))
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.Apply(ctx, parse(t, deployment))
	if err != nil {
		t.Fatal(err)
	}
	if first.GetResourceVersion() != again.GetResourceVersion() {
		t.Errorf("applying the same again changed the resource version from %s to %s", first.GetResourceVersion(), again.GetResourceVersion())
	}

	// Somebody else adds a container: the list merges by name.
	theirs := again.DeepCopy()
	containers, _, _ := unstructured.NestedSlice(theirs.Object, "spec", "template", "spec", "containers")
	containers = append(containers, map[string]any{"name": "sidecar", "image": "s:1"})
	if err := unstructured.SetNestedSlice(theirs.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Put("injector", theirs); err != nil {
		t.Fatal(err)
	}
	last, err := m.Apply(ctx, parse(t, deployment))
	if err != nil {
		t.Fatal(err)
	}
	containers, _, _ = unstructured.NestedSlice(last.Object, "spec", "template", "spec", "containers")
	if len(containers) != 2 {
		t.Errorf("got containers %v, want the injected one kept", containers)
	}
	if last.GetGeneration() != 2 {
		t.Errorf("got generation %d, want 2: the spec changed once", last.GetGeneration())
	}
	want := []string{"create Deployment default/web", "update Deployment default/web"}
	var got []string
	for _, c := range m.Changes() {
		got = append(got, c.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}
