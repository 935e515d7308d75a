package watch

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/patch"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestAPatchCanBeReadLive(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(patch.Kind, meta.RESTScopeNamespace)
	stored := NewObject(patch.Kind)
	stored.SetNamespace("default")
	stored.SetName("two-replicas")
	build := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper)
	}
	p := &patchesIn{cache: Cache{Client: build().Build()}, direct: build().WithObjects(stored).Build()}
	r, err := p.reader(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.GetLive(t.Context(), cluster.RefOf(stored))
	if err != nil || got == nil {
		t.Errorf("read live it is %v, error %v", got, err)
	}
}
