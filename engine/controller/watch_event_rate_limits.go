package controller

import (
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/object"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// eventRateLimits limits how often events enqueue resources. Any user who can write an object that belongs to
// a resource, or pretends to, has the resource reconciled by each write. So each object may do that a
// few times at once and then at intervals. Each resource is limited as well, whichever objects enqueue
// it, as names of objects cost nothing. A request that has to wait is never lost: it is in the queue
// for the end of the interval, and stands for all that came meanwhile.
type eventRateLimits struct {
	now func() time.Time
	log logr.Logger

	mu      sync.Mutex
	sources keyedLimiter[object.Ref]
	owners  keyedLimiter[ctrl.Request]
}

// sourceBurst and ownerBurst are the numbers of requests that do not wait, before the intervals count.
const sourceBurst, ownerBurst = 10, 50

// readersPerToken is how many of the resources that read an object one token of it enqueues.
const readersPerToken = 10

// maxTracked is how many objects, or resources, have a bucket of their own. All others share one.
const maxTracked = 10_000

func newEventRateLimits(log logr.Logger) *eventRateLimits {
	return &eventRateLimits{
		now:     time.Now,
		log:     log,
		sources: keyedLimiter[object.Ref]{burst: sourceBurst, interval: sourceInterval},
		owners:  keyedLimiter[ctrl.Request]{burst: ownerBurst, interval: ownerInterval},
	}
}

// delay returns after which time an object may enqueue a resource; 0 is at once.
func (w *eventRateLimits) delay(source object.Ref, owner ctrl.Request) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	return max(w.sources.delay(source, owner, 1, now), w.owners.delay(owner, owner, 1, now))
}

// delays returns after which time an object may enqueue each of its readers. One change enqueues all
// of them, however many they are; the next change waits longer, the more they are.
func (w *eventRateLimits) delays(source object.Ref, readers []types.NamespacedName) []time.Duration {
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

// A keyedLimiter has a token bucket for each key.
type keyedLimiter[K comparable] struct {
	burst    int
	interval time.Duration

	buckets map[K]*bucket
	swept   time.Time
}

// A bucket says how many tokens a key has used.
type bucket struct {
	// full is when the bucket has all tokens again.
	full time.Time
	// due is when the last request that had to wait is over, and owner is whose request it is.
	due   time.Time
	owner ctrl.Request
}

// delay takes some tokens of a key to enqueue an owner, and returns how long the request has to wait. The
// owner is the zero value for a request that many share, such as all readers of an object.
func (l *keyedLimiter[K]) delay(key K, owner ctrl.Request, tokens int, now time.Time) time.Duration {
	b := l.bucketOf(key, now)
	if b.owner == owner && now.Before(b.due) {
		return b.due.Sub(now) // the request that waits stands for this one as well
	}
	if b.full.Before(now) {
		b.full = now
	}
	taken := time.Duration(tokens) * l.interval
	wait := b.full.Sub(now) - time.Duration(l.burst-1)*l.interval
	if wait <= 0 {
		b.full = b.full.Add(taken)
		return 0
	}
	if wait = min(wait, longestPause); wait < longestPause {
		b.full = b.full.Add(taken)
	}
	b.due, b.owner = now.Add(wait), owner
	return wait
}

// bucketOf returns the bucket of a key. Keys beyond maxTracked share the bucket of the zero key.
func (l *keyedLimiter[K]) bucketOf(key K, now time.Time) *bucket {
	if l.buckets == nil {
		l.buckets = map[K]*bucket{}
	}
	if b := l.buckets[key]; b != nil {
		return b
	}
	if len(l.buckets) >= maxTracked && now.Sub(l.swept) >= sweepInterval {
		l.swept = now
		maps.DeleteFunc(l.buckets, func(_ K, b *bucket) bool { return !now.Before(b.full) })
	}
	if len(l.buckets) >= maxTracked {
		key = *new(K)
	}
	if l.buckets[key] == nil {
		l.buckets[key] = &bucket{}
	}
	return l.buckets[key]
}

// limited returns a handler of events that limits the requests of another one. It leaves out an event on
// which that panics: a panic in the goroutine of an informer would end the process.
func (w *eventRateLimits) limited(inner handler.EventHandler) handler.EventHandler {
	return wrapped(inner, func(e handledEvent, q requestQueue, enqueue func(requestQueue)) {
		of := object.Ref{GroupVersionKind: e.after.GetObjectKind().GroupVersionKind(), Namespace: e.after.GetNamespace(), Name: e.after.GetName()}
		defer func() {
			if cause := recover(); cause != nil {
				w.log.Error(nil, "the operator panicked over an event, and leaves it out", "object", of.String(), "stack", string(debug.Stack()))
			}
		}()
		enqueue(addingBy(q, func(to priorityQueue, o priorityqueue.AddOpts, requests ...ctrl.Request) {
			for _, req := range requests {
				one := o
				one.After = max(o.After, w.delay(of, req))
				to.AddWithOpts(one, req)
			}
		}))
	})
}
