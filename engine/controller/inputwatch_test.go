package controller

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/program"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lateCache is a cache that cannot be read before somebody has waited for it, as a
// cache that another goroutine starts.
type lateCache struct {
	*informertest.FakeInformers
	synced bool
}

func (c *lateCache) WaitForCacheSync(context.Context) bool {
	c.synced = true
	return true
}

func (c *lateCache) List(context.Context, client.ObjectList, ...client.ListOption) error {
	if !c.synced {
		return &cache.ErrCacheNotStarted{}
	}
	return nil
}

func TestFirstReadOfAnInputWaitsForItsWatchToBegin(t *testing.T) {
	t.Parallel()
	i := &inputs{
		ctx: t.Context(), watched: map[inputKey]*inputWatch{}, refers: map[types.NamespacedName]map[inputKey]bool{},
		open: func(inputKey) (cache.Cache, error) {
			return &lateCache{FakeInformers: &informertest.FakeInformers{}}, nil
		},
	}
	in := program.Input{Name: "region", Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "default", Object: "region"}
	if _, err := i.Read(t.Context(), types.NamespacedName{Namespace: "default", Name: "shop"}, in); err != nil {
		t.Error(err)
	}
}
