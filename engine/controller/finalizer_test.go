package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestFinalizerOfASubsystemLeavesItsSpecAlone: the resource is an object of another
// one, whose manager would give up all that it does not apply.
func TestFinalizerOfASubsystemLeavesItsSpecAlone(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	identity := func() *unstructured.Unstructured {
		u := watch.NewObject(kind)
		u.SetNamespace("default")
		u.SetName("child")
		u.SetUID("1")
		return u
	}
	rendered := identity()
	rendered.Object["spec"] = map[string]any{"text": "from the parent"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, meta.RESTScopeNamespace)
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper).WithObjects(identity()).Build() // it gives no UIDs itself
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(rendered), client.FieldOwner(cluster.FieldManager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	s := &cluster.Live{Client: c}
	want := identity()
	for _, finalizers := range [][]string{{reconcile.Finalizer}, nil} {
		want.SetFinalizers(finalizers)
		if err := s.ApplyFinalizers(t.Context(), want.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		got := identity()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"text": "from the parent"}, got.Object["spec"]); diff != "" {
			t.Errorf("with finalizers %v, the spec (-want +got):\n%s", finalizers, diff)
		}
		if diff := cmp.Diff(len(finalizers), len(got.GetFinalizers())); diff != "" {
			t.Errorf("number of finalizers (-want +got):\n%s", diff)
		}
	}
}
