package cluster_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestObjectsGoInTheForegroundAndSubsystemsInTheirOwnOrder(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason     string
		finalizers []string
		want       metav1.DeletionPropagation
	}{
		"plain":                       {"it is absent when what belongs to it is", nil, metav1.DeletePropagationForeground},
		"somebody else's finalizer":   {"that says nothing of an order", []string{"example.com/dns"}, metav1.DeletePropagationForeground},
		"the resource of an operator": {"the garbage collector would delete its objects in any order", []string{"example.com/dns", cluster.TeardownFinalizer}, metav1.DeletePropagationBackground},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"})
			u.SetNamespace("default")
			u.SetName("child")
			u.SetUID("1")
			u.SetFinalizers(row.finalizers)
			var got *client.DeleteOptions
			c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(u).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
					got = (&client.DeleteOptions{}).ApplyOptions(options)
					return nil
				},
			}).Build()
			if err := (&cluster.Live{Client: c, Direct: c}).Delete(t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
				t.Fatal(err)
			}
			if got == nil || *got.PropagationPolicy != row.want || *got.Preconditions.UID != u.GetUID() {
				t.Errorf("%s: deleted with %+v, wanted %s", row.reason, got, row.want)
			}
		})
	}
}
