package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/controller/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// An enqueuer is the source of requests that no event of a watch causes. Its zero value is a source
// that has not started.
type enqueuer struct {
	mu    sync.Mutex
	queue requestQueue
}

// Start implements source.Source.
func (e *enqueuer) Start(_ context.Context, q requestQueue) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = q
	return nil
}

// enqueueAfter enqueues a resource after some time. It does nothing before the controller has started,
// as that begins with all resources.
func (e *enqueuer) enqueueAfter(key types.NamespacedName, d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queue != nil {
		e.queue.AddAfter(ctrl.Request{NamespacedName: key}, d)
	}
}

// enqueueBehind enqueues resources that no client has changed, behind those that events enqueue: a new
// version of a package concerns all of its resources, and a person who edits one must not wait for
// them. No more of them are reconciled at once than there are workers.
func (e *enqueuer) enqueueBehind(keys ...types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q, ok := e.queue.(priorityqueue.PriorityQueue[ctrl.Request]) // the library's queues are, once the controller has started
	for _, key := range keys {
		if ok {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, ctrl.Request{NamespacedName: key})
		}
	}
}

// enqueueAll enqueues every resource of a kind that its caches have, as enqueueBehind does.
func (e *enqueuer) enqueueAll(ctx context.Context, of *watch.KindResources) error {
	keys, err := keysOf(ctx, of)
	e.enqueueBehind(keys...)
	return err
}

// keysOf returns every resource of a kind that its caches have.
func keysOf(ctx context.Context, of *watch.KindResources) ([]types.NamespacedName, error) {
	all, err := of.List(ctx)
	out := make([]types.NamespacedName, len(all))
	for i, u := range all {
		out[i] = client.ObjectKeyFromObject(u)
	}
	return out, err
}
