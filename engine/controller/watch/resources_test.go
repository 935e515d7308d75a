package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
)

// unlistedCache is a cache whose kinds are never listed.
type unlistedCache struct{ cache.Cache }

func (unlistedCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return &controllertest.FakeInformer{}, nil
}

// The worker that swaps one Package would serve no other one any more.
func TestAKindThatCannotBeListedKeepsNobodyForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &Resources{parts: map[string]Cache{"": {Cache: unlistedCache{}, errors: &watchErrors{}}}}
		k := &KindResources{from: r, kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, places: []string{""}}
		began := time.Now()
		_, err := k.List(t.Context())
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != SyncTimeout {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
