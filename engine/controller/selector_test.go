package controller

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Each process of several sees all deletions, and one of them reports each.
func TestWhatAnotherShardReportsAsDepartedIsForgotten(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	c := &packageController{reconciler: &reconcile.Reconciler{Kind: kind}, deselected: newDeselectedResources(labels.Everything(), kind, nil, logr.Discard(), nil)}
	u := watch.NewObject(kind)
	u.SetNamespace("a")
	u.SetName("gone")
	c.deselected.predicate().Delete(event.DeleteEvent{Object: u})
	ours := Shard{1, 3}.only(func(types.NamespacedName) types.UID { return "" }, c.reconcile, c.forget)
	if _, err := ours(t.Context(), client.ObjectKeyFromObject(u)); err != nil {
		t.Fatal(err)
	}
	if n := len(c.deselected.keys); n > 0 {
		t.Errorf("%d resources are remembered for ever", n)
	}
}
