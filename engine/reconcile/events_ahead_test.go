package reconcile_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// reluctant is a store that does not take the first status that says Failed.
type reluctant struct {
	cluster.Cluster
	refused int
}

// ApplyStatus implements cluster.Cluster.
func (r *reluctant) ApplyStatus(ctx context.Context, u *unstructured.Unstructured) error {
	if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase == "Failed" && r.refused == 0 {
		r.refused++
		return errors.New("the server does not answer")
	}
	return r.Cluster.ApplyStatus(ctx, u)
}

// The status that is stored ahead of the objects has what is known to have failed. If the report before was
// lost, it is the first to say so, and the next report changes nothing.
func TestAFailureThatIsFirstSaidAheadOfTheObjectsIsAnEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
inputs: theme: {apiVersion: "v1", kind: "ConfigMap", name: "theme"}
components: bad: {
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "bad"}
	failed: told: (*live.bad.o.data.problem | "none") == "fire"
}
components: extra: {
	when: (*inputs.theme.object.data.text | "none") == "dark"
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "extra"}
}
`)
	b.rest()
	b.expectEvents("it is created", "Created: Created ConfigMap default/bad of component bad", "BecameReady: all components are verified: 1/1")
	b.reconciler.Resources = &reluctant{Cluster: b.memory}
	u := b.find("ConfigMap", "bad")
	_ = unstructured.SetNestedField(u.Object, "fire", "data", "problem")
	b.put(u.Object)
	if _, err := b.step(); err == nil {
		t.Fatal("the report of the failure was not lost")
	}
	b.expectEvents("nobody knows of the failure yet")
	b.put(settings("default", "theme", map[string]any{"text": "dark"}))
	b.steps()
	b.expectEvents("it is said with the plan of the other object",
		`Failed: bad: failed.told holds: (*live.bad.o.data.problem | "none") == "fire" (shop/body.cue:6); and 1 more component is not ready`, "Created: Created ConfigMap default/extra of component extra")
}
