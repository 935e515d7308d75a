package rollout_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
)

// refusing is a cluster that calls each change of the object a invalid.
type refusing struct{ cluster.Cluster }

func (c refusing) Apply(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.GetName() == "a" && u.GetUID() != "" {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil)
	}
	return c.Cluster.Apply(ctx, u)
}

// Nothing is all or none where one object is written: the others stay as they are, and the inventory has to say so, or
// they would not be repaired while the component waits.
func TestAChangeThatIsRefusedLeavesItsNeighboursInTheInventory(t *testing.T) {
	t.Parallel()
	const pair = `components: pair: objects: {
	a: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: state: "old"}
	b: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b", data: state: "same"}
}
`
	digest := func(w *world) string {
		entry, _, _ := w.inventory.Find(cluster.RefOf(w.object("ConfigMap", "b")), w.owner.Namespace)
		return entry.Digest
	}
	w := newWorld(t, pair)
	w.mustRun()
	want := digest(w)
	if want == "" {
		t.Fatal("the inventory has no digest of b")
	}
	for g := range w.inventory { // as after a write of the status that was lost
		for e := range w.inventory[g].Objects {
			w.inventory[g].Objects[e].Digest = ""
		}
	}
	w.load(strings.Replace(pair, "old", "new", 1))
	w.cluster = refusing{w.cluster}
	w.wrote()
	result, _ := w.run()
	expectStates(t, result, "pair: Failed ObjectRejected")
	w.expectWrites("a is refused, and b is as it should be")
	if got := digest(w); got != want {
		t.Errorf("the digest of b is %q, not %q", got, want)
	}
}
