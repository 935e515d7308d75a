package reconcile_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
)

// TestAnObjectInTheWayIsLookedAtLessAndLessOften: each look is a request, and a tenant may have hundreds of resources with such an
// object. Each had five looks in 25 seconds, forever.
func TestAnObjectInTheWayIsLookedAtLessAndLessOften(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason     string
		finalizers []string
		deleted    bool
		want       string
	}{
		"it belongs to another":      {"nobody says when it goes", nil, false, "False OwnedByAnother"},
		"its deletion is never over": {"its finalizer may stay", []string{"example.com/never"}, true, "False WaitingForDeletion"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, `components: web: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", data: size: "\(cr.spec.size)"}`)
			there := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			there.SetNamespace(shopKey.Namespace)
			there.SetName("web")
			there.SetFinalizers(row.finalizers)
			if row.deleted { // by a resource of that name that is gone
				b.rest()
				there = b.find("ConfigMap", "web")
				there.SetFinalizers(row.finalizers)
			}
			there, err := b.memory.Put("rival", there)
			if err != nil {
				t.Fatal(err)
			}
			if row.deleted {
				if err := b.memory.Delete(t.Context(), cluster.RefOf(there), there.GetUID()); err != nil {
					t.Fatal(err)
				}
			}
			looks := make([]int, 120)
			began := b.now
			for b.now.Before(began.Add(2 * time.Hour)) {
				looks[int(b.now.Sub(began)/time.Minute)]++
				again, err := b.step()
				if err != nil || again <= 0 {
					t.Fatalf("%s: it is looked at again after %s (error %v)", row.reason, again, err)
				}
				b.now = b.now.Add(again)
			}
			t.Log(looks)
			b.expect(row.reason, row.want)
			last := 0
			for _, n := range looks[60:] {
				last += n
			}
			if looks[0] < 10 || last > 13 {
				t.Errorf("%s: it was looked at %d times in the first minute, and %d times in the last hour", row.reason, looks[0], last)
			}
		})
	}
}
