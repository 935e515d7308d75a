package watch

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"operetta.dev/engine/cluster"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
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
	i := newInputs(nil, func(inputKey) (Cache, error) {
		return Cache{Cache: &lateCache{FakeInformers: &informertest.FakeInformers{}}, errors: &watchErrors{}}, nil
	})
	i.ctx = t.Context()
	in := cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "default", Name: "region"}
	if _, err := i.List(t.Context(), types.NamespacedName{Namespace: "default", Name: "shop"}, in); err != nil {
		t.Error(err)
	}
}

func TestAnInputThatMayNotBeReadIsReadOnceItMay(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	informer := controllertest.NewFakeInformer()
	woken := make(chan types.NamespacedName, 1)
	i := newInputs(func(_ InputEvent, keys ...types.NamespacedName) { woken <- keys[0] }, func(inputKey) (Cache, error) {
		late := &lateCache{FakeInformers: &informertest.FakeInformers{InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{kind: informer}}}
		out := Cache{Cache: late, errors: &watchErrors{}}
		out.errors.note(kind.String(), forbidden("no"))
		return out, nil
	})
	i.ctx = t.Context()
	owner, in := request("shop"), cluster.Selection{Kind: kind, Namespace: "default", Name: "token"}
	ctx := WithRequest(t.Context(), owner)
	var unreadable *cluster.KindUnreadableError
	if _, err := i.List(ctx, owner.NamespacedName, in); !errors.As(err, &unreadable) || unreadable.Kind != kind {
		t.Fatalf("the error is %v", err)
	}
	informer.Synced()
	if got := <-woken; got != owner.NamespacedName {
		t.Errorf("%s is reconciled again", got)
	}
	if _, err := i.List(ctx, owner.NamespacedName, in); err != nil {
		t.Error(err)
	}
}
