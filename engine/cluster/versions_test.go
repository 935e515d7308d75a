package cluster_test

import (
	"context"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestWhoAsksForVersionsGetsWhatTheCacheHas: at rest, that is all that is asked for.
func TestWhoAsksForVersionsGetsWhatTheCacheHas(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, apimeta.RESTScopeNamespace)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("default")
	u.SetName("child")
	completed := 0
	live := &cluster.Live{
		Client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper).WithObjects(u).Build(),
		ReadFull: func(_ context.Context, cached *unstructured.Unstructured, _ func(context.Context, cluster.Ref) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
			completed++
			return cached, nil
		},
	}
	for want, ctx := range []context.Context{cluster.VersionsOnly(t.Context()), t.Context()} {
		got, err := live.GetCached(ctx, cluster.RefOf(u))
		if err != nil || got == nil || got.GetResourceVersion() == "" {
			t.Fatalf("got %v, error %v", got, err)
		}
		if completed != want {
			t.Errorf("it was completed %d times, want %d", completed, want)
		}
	}
}
