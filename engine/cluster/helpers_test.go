package cluster_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/test/clustertest"
	"sigs.k8s.io/yaml"
)

// widgetKind is a custom resource with a status.
var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// TestMain runs these tests on the kind of cluster that clustertest is told to: that
// both pass them is what makes the cluster in memory good for dry runs and tests.
func TestMain(m *testing.M) { os.Exit(clustertest.Main(m, widgetKind)) }

// parse returns an object of a site.
func parse(t *testing.T, s *clustertest.Site, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace(s.Namespace)
	set(t, u, "test", "metadata", "labels", ownership.OwnerLabel) // what the engine writes has it
	return u
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: a, image: "a:1"}
`

const (
	configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}`
	widget    = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}`
)

// apply applies an object to the one that is there, or creates it. It has to succeed.
func apply(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if there := live(s, u); there != nil && u.GetUID() == "" {
		u = u.DeepCopy()
		u.SetUID(there.GetUID())
	}
	out, err := s.Apply(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// set sets a field of an object.
func set(t *testing.T, u *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// field returns a field of an object, or nil.
func field(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// live returns an object as it is, or nil.
func live(s *clustertest.Site, u *unstructured.Unstructured) *unstructured.Unstructured {
	return s.Find(u.GroupVersionKind(), u.GetName())
}

// expectEvents compares what has changed since the last call, each as "verb Kind name".
func expectEvents(t *testing.T, s *clustertest.Site, reason string, want ...string) {
	t.Helper()
	var got []string
	for _, e := range s.Events() {
		got = append(got, fmt.Sprintf("%s %s %s", e.Operation, e.Ref.Kind, e.Ref.Name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: events (-want +got):\n%s", reason, diff)
	}
}

// remove deletes an object as the engine does.
func remove(t *testing.T, s *clustertest.Site, u *unstructured.Unstructured) {
	t.Helper()
	if err := s.Delete(t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
		t.Fatal(err)
	}
}
