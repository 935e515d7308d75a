package reconcile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/status"
)

// lastTold is an observer that has what it was told last of each resource.
type lastTold map[types.NamespacedName]status.Summary

// Observe implements reconcile.Observer.
func (n lastTold) Observe(key types.NamespacedName, found status.Summary) { n[key] = found }

// Gone implements reconcile.Observer.
func (n lastTold) Gone(key types.NamespacedName) { delete(n, key) }

func TestAnObserverIsToldHowFarAResourceIsUntilItIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
components: {
	config: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c"}
	web: {
		dependsOn: config: {}
		objects: d: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "web"}
	}
	last: {
		dependsOn: web: {}
		objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "last"}
	}
}
`)
	seen := lastTold{}
	b.reconciler.Observer = seen
	b.settle()
	found := seen[shopKey]
	want := status.Summary{Phase: status.PhaseWaiting, Digest: b.program.Digest(), Components: []status.ComponentSummary{
		{Name: "config", State: status.Verified, Reason: status.ReasonVerified},
		{Name: "web", State: status.Applied, Reason: status.ReasonNotReady},
		{Name: "last", State: status.Waiting, Reason: status.ReasonDependency},
	}}
	if diff := cmp.Diff(want, found, cmpopts.IgnoreFields(status.ComponentSummary{}, "Since")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range found.Components {
		if waits := c.State != status.Verified; waits == c.Since.IsZero() {
			t.Errorf("%s is %s since %s", c.Name, c.State, c.Since)
		}
	}
	act(t, b.memory, deleted)
	b.rest()
	b.settle()
	if left, ok := seen[shopKey]; ok {
		t.Errorf("the resource is gone, and the observer was told last: %v", left)
	}
}

func TestAnObserverIsToldOfAPause(t *testing.T) {
	t.Parallel()
	b := newBench(t, `components: a: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "c"}`)
	seen := lastTold{}
	b.reconciler.Observer = seen
	b.settle()
	if got := seen[shopKey]; got.Phase != status.PhaseReady || got.Paused {
		t.Fatalf("the resource is %v", got)
	}
	b.annotate("operetta.dev/paused", "true")
	b.settle()
	if got := seen[shopKey]; !got.Paused || len(got.Components) != 1 {
		t.Errorf("the resource is paused, and the observer was told %v", got)
	}
}
