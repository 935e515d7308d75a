package watch

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Sources returns the sources of the events of the resources, one for each namespace. A controller begins once its kind has
// been listed, whatever is with others, and of several namespaces once each has been listed, or cannot be: who lacks a role
// in one serves the others meanwhile. It is not ready before that: see Resources.Check.
func (k *KindResources) Sources(h handler.EventHandler, which ...predicate.Predicate) []source.Source {
	var out []source.Source
	var noted []*resourceSource
	for _, place := range k.places {
		part := k.from.parts[place]
		of := source.Kind[client.Object](oneKind{part.Cache, k.kind}, NewObject(k.kind), h, which...)
		if len(k.places) == 1 {
			out = append(out, of)
			continue
		}
		s := &resourceSource{SyncingSource: of, kind: k.kind, errors: part.errors}
		out, noted = append(out, s), append(noted, s)
	}
	k.from.mu.Lock()
	defer k.from.mu.Unlock()
	k.from.sources[k.kind] = noted
	return out
}

// End ends what Sources has begun, when the controller has ended: nobody waits for the resources any more. Their watches go on.
func (k *KindResources) End() {
	k.from.mu.Lock()
	defer k.from.mu.Unlock()
	delete(k.from.sources, k.kind)
}

// oneKind is a cache that has synced once one of its kinds has. The library's source of a kind waits for all that the cache
// has, so that a kind which may not be listed would keep the controllers of all others from beginning.
type oneKind struct {
	cache.Cache

	kind schema.GroupVersionKind
}

// WaitForCacheSync implements cache.Cache.
func (o oneKind) WaitForCacheSync(ctx context.Context) bool {
	informer, err := o.GetInformer(ctx, NewObject(o.kind), cache.BlockUntilSynced(false))
	return err == nil && toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
}

// listState says how far the first list of a source is.
type listState int32

// The states of the first list.
const (
	notStarted listState = iota
	waitingForList
	listed
	// cannotBeListed is the state of one that is refused, or takes too long.
	cannotBeListed
)

// A resourceSource is the source of the resources of one namespace of several. A caller that waits for its first list waits only
// as long as that may come soon.
type resourceSource struct {
	source.SyncingSource

	kind   schema.GroupVersionKind
	errors *watchErrors
	state  atomic.Int32
	// ctx is that of the controller: the one of WaitForSync ends with the wait, and the list may come later.
	ctx context.Context //nolint:containedctx // Start gets it
}

func (s *resourceSource) is(state listState) bool { return listState(s.state.Load()) == state }

// Start implements source.Source.
func (s *resourceSource) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	s.ctx = ctx
	s.state.Store(int32(waitingForList))
	return s.SyncingSource.Start(ctx, q)
}

// WaitForSync implements source.SyncingSource.
func (s *resourceSource) WaitForSync(ctx context.Context) error {
	synced := make(chan error, 1)
	go func() {
		err := s.SyncingSource.WaitForSync(s.ctx)
		if err == nil && s.ctx.Err() == nil {
			s.state.Store(int32(listed))
		}
		synced <- err
	}()
	tick, deadline := time.Tick(syncPoll), time.After(SyncTimeout)
	for {
		select {
		case err := <-synced:
			return err
		case <-ctx.Done():
			return nil // the controller ends
		case <-deadline:
		case <-tick:
			if !apierrors.IsForbidden(s.errors.last(s.kind)) {
				continue
			}
		}
		s.state.CompareAndSwap(int32(waitingForList), int32(cannotBeListed))
		return nil
	}
}
