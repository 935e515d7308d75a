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

// wakes limits how often others wake resources. Whoever may write an object that is a
// resource's, or looks like it, has the resource reconciled by each write; so each object
// may do so a few times at once and then at a pace, and each resource is woken at a pace,
// whoever does it, as names of objects cost nothing. A wake that has to wait is never lost:
// it is in the queue for the end of the pause, with all that came meanwhile.
type wakes struct {
	now func() time.Time
	log logr.Logger

	mu      sync.Mutex
	sources turns[cluster.Ref]
	owners  turns[ctrl.Request]
}

// sourceBurst and ownerBurst are how often a wake is at once, before the intervals count.
const sourceBurst, ownerBurst = 10, 50

// readersPerTurn is how many resources that read an object are woken by one turn of it.
const readersPerTurn = 10

// knownTurns is how many objects, or resources, are told apart. Beyond that, all others
// share the turns of one.
const knownTurns = 10_000

func newWakes(log logr.Logger) *wakes {
	return &wakes{
		now:     time.Now,
		log:     log,
		sources: turns[cluster.Ref]{burst: sourceBurst, interval: sourceInterval},
		owners:  turns[ctrl.Request]{burst: ownerBurst, interval: ownerInterval},
	}
}

// wait returns when an object may wake a resource: 0 is at once.
func (w *wakes) wait(source cluster.Ref, owner ctrl.Request) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	return max(w.sources.wait(source, owner, 1, now), w.owners.wait(owner, owner, 1, now))
}

// waits returns when an object may wake each of those who read it. One change is for all of
// them, however many they are; the next one waits the longer the more they are.
func (w *wakes) waits(source cluster.Ref, readers []types.NamespacedName) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	shared := w.sources.wait(source, ctrl.Request{}, 1+(len(readers)-1)/readersPerTurn, now)
	out := make([]time.Duration, len(readers))
	for i, key := range readers {
		reader := ctrl.Request{NamespacedName: key}
		out[i] = max(shared, w.owners.wait(reader, reader, 1, now))
	}
	return out
}

// turns are those of several keys.
type turns[K comparable] struct {
	burst    int
	interval time.Duration

	of    map[K]*turn
	swept time.Time
}

// A turn is how far a key has used its turns up.
type turn struct {
	// until is when all of them are there again.
	until time.Time
	// due is when the last wake that had to wait is over, and owner whom it is for.
	due   time.Time
	owner ctrl.Request
}

// wait takes so many turns of a key to wake an owner, and returns how long that has to wait.
// Whoever shares a wake, such as all who read an object, has the zero value as its owner.
func (t *turns[K]) wait(key K, owner ctrl.Request, take int, now time.Time) time.Duration {
	at := t.at(key, now)
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

// at returns the turn of a key.
func (t *turns[K]) at(key K, now time.Time) *turn {
	if t.of == nil {
		t.of = map[K]*turn{}
	}
	if at := t.of[key]; at != nil {
		return at
	}
	if len(t.of) >= knownTurns && now.Sub(t.swept) >= sweepInterval {
		t.swept = now
		for k, at := range t.of {
			if !now.Before(at.until) {
				delete(t.of, k)
			}
		}
	}
	if len(t.of) >= knownTurns {
		key = *new(K)
	}
	if t.of[key] == nil {
		t.of[key] = &turn{}
	}
	return t.of[key]
}

type requestQueue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// paced returns a handler of events whose requests wait as long as they have to. An event that
// makes it panic is left out: it is one of an informer's goroutine, and would end the process.
func (w *wakes) paced(inner handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) {
			defer w.leaveOut(e.Object)
			inner.Create(ctx, e, w.queue(e.Object, q))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) {
			defer w.leaveOut(e.ObjectNew)
			inner.Update(ctx, e, w.queue(e.ObjectNew, q))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) {
			defer w.leaveOut(e.Object)
			inner.Delete(ctx, e, w.queue(e.Object, q))
		},
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q requestQueue) {
			defer w.leaveOut(e.Object)
			inner.Generic(ctx, e, w.queue(e.Object, q))
		},
	}
}

// leaveOut recovers from a panic in the handler of an event.
func (w *wakes) leaveOut(of client.Object) {
	if cause := recover(); cause != nil {
		w.log.Error(nil, "the operator has a fault, and leaves an event out", "object", sourceOf(of).String(), "stack", string(debug.Stack()))
	}
}

// queue returns a queue in which the requests of an object wait. Every queue of the library
// is one with priorities, as is asked of it by its handlers.
func (w *wakes) queue(of client.Object, q requestQueue) requestQueue {
	inner, ok := q.(priorityqueue.PriorityQueue[ctrl.Request])
	if !ok {
		return q
	}
	return &pacedQueue{PriorityQueue: inner, wakes: w, source: sourceOf(of)}
}

// sourceOf returns what tells an object that wakes from others, whatever its UID.
func sourceOf(o client.Object) cluster.Ref {
	return cluster.Ref{GroupVersionKind: o.GetObjectKind().GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// pacedQueue is a queue as the handler of one event sees it.
type pacedQueue struct {
	priorityqueue.PriorityQueue[ctrl.Request]

	wakes  *wakes
	source cluster.Ref
}

// Add implements workqueue.TypedInterface.
func (q *pacedQueue) Add(req ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *pacedQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	for _, req := range requests {
		one := o
		one.After = max(o.After, q.wakes.wait(q.source, req))
		q.PriorityQueue.AddWithOpts(one, req)
	}
}
