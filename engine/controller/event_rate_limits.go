package controller

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// eventRateLimits limits how often others wake resources. Whoever may write an object that is a
// resource's, or looks like it, has the resource reconciled by each write; so each object
// may do so a few times at once and then at a pace, and each resource is woken at a pace,
// whoever does it, as names of objects cost nothing. A wake that has to wait is never lost:
// it is in the queue for the end of the pause, with all that came meanwhile.
type eventRateLimits struct {
	now func() time.Time
	log logr.Logger

	mu      sync.Mutex
	sources keyedLimiter[cluster.Ref]
	owners  keyedLimiter[ctrl.Request]
}

// sourceBurst and ownerBurst are how often a wake is at once, before the intervals count.
const sourceBurst, ownerBurst = 10, 50

// readersPerToken is how many resources that read an object are woken by one turn of it.
const readersPerToken = 10

// maxTracked is how many objects, or resources, are told apart. Beyond that, all others
// share the turns of one.
const maxTracked = 10_000

func newEventRateLimits(log logr.Logger) *eventRateLimits {
	return &eventRateLimits{
		now:     time.Now,
		log:     log,
		sources: keyedLimiter[cluster.Ref]{burst: sourceBurst, interval: sourceInterval},
		owners:  keyedLimiter[ctrl.Request]{burst: ownerBurst, interval: ownerInterval},
	}
}

// delay returns when an object may wake a resource: 0 is at once.
func (w *eventRateLimits) delay(source cluster.Ref, owner ctrl.Request) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	return max(w.sources.delay(source, owner, 1, now), w.owners.delay(owner, owner, 1, now))
}

// delays returns when an object may wake each of those who read it. One change is for all of
// them, however many they are; the next one delays the longer the more they are.
func (w *eventRateLimits) delays(source cluster.Ref, readers []types.NamespacedName) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	shared := w.sources.delay(source, ctrl.Request{}, 1+(len(readers)-1)/readersPerToken, now)
	out := make([]time.Duration, len(readers))
	for i, key := range readers {
		reader := ctrl.Request{NamespacedName: key}
		out[i] = max(shared, w.owners.delay(reader, reader, 1, now))
	}
	return out
}

// keyedLimiter are those of several keys.
type keyedLimiter[K comparable] struct {
	burst    int
	interval time.Duration

	buckets map[K]*bucket
	swept   time.Time
}

// A bucket is how far a key has used its turns up.
type bucket struct {
	// until is when all of them are there again.
	until time.Time
	// due is when the last wake that had to wait is over, and owner whom it is for.
	due   time.Time
	owner ctrl.Request
}

// delay takes so many turns of a key to wake an owner, and returns how long that has to delay.
// Whoever shares a wake, such as all who read an object, has the zero value as its owner.
func (t *keyedLimiter[K]) delay(key K, owner ctrl.Request, take int, now time.Time) time.Duration {
	at := t.bucketOf(key, now)
	if at.owner == owner && now.Before(at.due) {
		return at.due.Sub(now) // the one that waits is for this as well
	}
	if at.until.Before(now) {
		at.until = now
	}
	taken := time.Duration(take) * t.interval
	wait := at.until.Sub(now) - time.Duration(t.burst-1)*t.interval
	if wait <= 0 {
		at.until = at.until.Add(taken)
		return 0
	}
	if wait = min(wait, longestPause); wait < longestPause {
		at.until = at.until.Add(taken)
	}
	at.due, at.owner = now.Add(wait), owner
	return wait
}

// bucketOf returns the turn of a key.
func (t *keyedLimiter[K]) bucketOf(key K, now time.Time) *bucket {
	if t.buckets == nil {
		t.buckets = map[K]*bucket{}
	}
	if at := t.buckets[key]; at != nil {
		return at
	}
	if len(t.buckets) >= maxTracked && now.Sub(t.swept) >= sweepInterval {
		t.swept = now
		for k, at := range t.buckets {
			if !now.Before(at.until) {
				delete(t.buckets, k)
			}
		}
	}
	if len(t.buckets) >= maxTracked {
		key = *new(K)
	}
	if t.buckets[key] == nil {
		t.buckets[key] = &bucket{}
	}
	return t.buckets[key]
}

type requestQueue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// limited returns a handler of events whose requests wait as long as they have to. An event that
// makes it panic is left out: it is one of an informer's goroutine, and would end the process.
func (w *eventRateLimits) limited(inner handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) {
			defer w.recoverEvent(e.Object)
			inner.Create(ctx, e, w.queue(e.Object, q))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) {
			defer w.recoverEvent(e.ObjectNew)
			inner.Update(ctx, e, w.queue(e.ObjectNew, q))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) {
			defer w.recoverEvent(e.Object)
			inner.Delete(ctx, e, w.queue(e.Object, q))
		},
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q requestQueue) {
			defer w.recoverEvent(e.Object)
			inner.Generic(ctx, e, w.queue(e.Object, q))
		},
	}
}

// recoverEvent recovers from a panic in the handler of an event.
func (w *eventRateLimits) recoverEvent(of client.Object) {
	if cause := recover(); cause != nil {
		w.log.Error(nil, "the operator has a fault, and leaves an event out", "object", sourceOf(of).String(), "stack", string(debug.Stack()))
	}
}

// queue returns a queue in which the requests of an object wait. Every queue of the library
// is one with priorities, as is asked of it by its handlers.
func (w *eventRateLimits) queue(of client.Object, q requestQueue) requestQueue {
	inner, ok := q.(priorityqueue.PriorityQueue[ctrl.Request])
	if !ok {
		return q
	}
	return &limitedQueue{PriorityQueue: inner, limits: w, source: sourceOf(of)}
}

// sourceOf returns what tells an object that wakes from others, whatever its UID.
func sourceOf(o client.Object) cluster.Ref {
	return cluster.Ref{GroupVersionKind: o.GetObjectKind().GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// limitedQueue is a queue as the handler of one event sees it.
type limitedQueue struct {
	priorityqueue.PriorityQueue[ctrl.Request]

	limits *eventRateLimits
	source cluster.Ref
}

// Add implements workqueue.TypedInterface.
func (q *limitedQueue) Add(req ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *limitedQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	for _, req := range requests {
		one := o
		one.After = max(o.After, q.limits.delay(q.source, req))
		q.PriorityQueue.AddWithOpts(one, req)
	}
}
