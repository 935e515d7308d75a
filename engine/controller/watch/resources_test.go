package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waitingClient lists nothing until the context ends, as that of a cache does whose kind may not be listed.
type waitingClient struct{ client.Client }

func (waitingClient) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// The worker that swaps one Package would serve no other one any more.
func TestAKindThatCannotBeListedKeepsNobodyForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &Resources{parts: map[string]Cache{"": {Client: waitingClient{}}}}
		k := &KindResources{from: r, kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, places: []string{""}}
		began := time.Now()
		_, err := k.List(t.Context())
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != SyncTimeout {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
