package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/history"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// errNoAnswer is the cause if the API server has not said why a kind cannot be read.
var errNoAnswer = errors.New("the API server has not listed it within " + SyncTimeout.String())

// A pendingWatch is the watch of one kind for one controller until its cache has synced.
// Readers of the kind wait for that until a deadline, which begins with the first of them.
// After the deadline each reader gets an error at once, so that a kind that can never be
// listed holds no workers, and its resource is enqueued when the cache has synced.
type pendingWatch struct {
	kind     schema.GroupVersionKind
	informer cache.Informer
	// synced is closed when the cache has the kind.
	synced <-chan struct{}
	errors *watchErrors
	// deadline is when waiting ends.
	deadline time.Time

	mu      sync.Mutex
	waiting map[ctrl.Request]bool
}

// startWatch starts the watch of a kind in a cache. It does not wait until that has synced.
func startWatch(ctx context.Context, in Cache, kind schema.GroupVersionKind) (*pendingWatch, error) {
	informer, err := in.GetInformer(ctx, NewObject(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	w := newPendingWatch(kind, informer.HasSyncedChecker().Done(), in.errors)
	w.informer = informer
	return w, nil
}

func newPendingWatch(kind schema.GroupVersionKind, synced <-chan struct{}, errors *watchErrors) *pendingWatch {
	return &pendingWatch{kind: kind, synced: synced, errors: errors, deadline: time.Now().Add(SyncTimeout), waiting: map[ctrl.Request]bool{}}
}

// source returns a source of the events of the kind, which also enqueues the waiting
// resources once the cache has synced.
func (w *pendingWatch) source(h handler.EventHandler, p ...predicate.Predicate) source.Source {
	events := &source.Informer{Informer: w.informer, Handler: h, Predicates: p}
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		go w.enqueueWaiters(ctx, w.adding(q))
		return events.Start(ctx, q)
	})
}

// A Noter is a queue that notes why a request is added.
type Noter interface {
	// AddBecause adds a request, and notes what has triggered it.
	AddBecause(t history.Trigger, req ctrl.Request)
}

// adding returns how a request is added to a queue because the kind can be read.
func (w *pendingWatch) adding(q workqueue.TypedRateLimitingInterface[ctrl.Request]) func(ctrl.Request) {
	noter, ok := q.(Noter)
	if !ok {
		return q.Add
	}
	t := history.Trigger{Cause: history.Readable, APIVersion: w.kind.GroupVersion().String(), Kind: w.kind.Kind}
	return func(req ctrl.Request) { noter.AddBecause(t, req) }
}

// enqueueWaiters adds the waiting resources to the queue once the cache has synced.
func (w *pendingWatch) enqueueWaiters(ctx context.Context, add func(ctrl.Request)) {
	select {
	case <-ctx.Done():
		return
	case <-w.synced:
	}
	w.mu.Lock()
	waiting := w.waiting
	w.waiting = nil
	w.mu.Unlock()
	for req := range waiting {
		add(req)
	}
}

// await waits until the cache has synced. It errors with a cluster.KindUnreadableError
// when that takes too long, or the API server has said that it is not allowed.
func (w *pendingWatch) await(ctx context.Context) error {
	select {
	case <-w.synced:
		return nil
	default:
	}
	for tick := time.Tick(syncPoll); ; {
		cause := w.errors.last(w.kind)
		if apierrors.IsForbidden(cause) || !time.Now().Before(w.deadline) {
			return w.unreadable(ctx, cause)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.synced:
			return nil
		case <-tick:
		}
	}
}

// unreadable notes that the resource of the context waits, and returns the error that says
// why. It returns nil if the cache has synced meanwhile.
func (w *pendingWatch) unreadable(ctx context.Context, cause error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		return nil
	}
	if req, ok := ctx.Value(requestKey{}).(ctrl.Request); ok {
		w.waiting[req] = true
	}
	if cause == nil {
		cause = errNoAnswer
	}
	return &cluster.KindUnreadableError{Kind: w.kind, Cause: cause}
}

// requestKey is the key of the request in the context of a reconcile.
type requestKey struct{}

// WithRequest returns the context of a reconcile of a request. A Cluster and a reader of Patches
// enqueue the request again when they can read what they could not.
func WithRequest(ctx context.Context, req ctrl.Request) context.Context {
	return context.WithValue(ctx, requestKey{}, req)
}

// RequestFrom returns the request that a context was given by WithRequest, or the zero value.
func RequestFrom(ctx context.Context) ctrl.Request {
	req, _ := ctx.Value(requestKey{}).(ctrl.Request)
	return req
}

// watchErrors are the errors of the watches of one cache; its zero value has none.
type watchErrors struct {
	mu     sync.Mutex
	byKind map[string]error
	// refused are the kinds that may not be listed or watched at present.
	refused map[string]bool
	// gone are the kinds that the API server does not know at present.
	gone map[string]bool
}

// may records whether a kind may be listed and watched.
func (e *watchErrors) may(kind string, may bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if may {
		delete(e.refused, kind)
		delete(e.gone, kind)
		return
	}
	if e.refused == nil {
		e.refused = map[string]bool{}
	}
	e.refused[kind] = true
}

// isRefused reports whether a kind may not be listed or watched at present.
func (e *watchErrors) isRefused(kind schema.GroupVersionKind) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refused[kind.String()]
}

// isGone reports whether the API server does not know a kind at present.
func (e *watchErrors) isGone(kind schema.GroupVersionKind) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gone[kind.String()]
}

// handle is the handler of the cache's errors.
func (e *watchErrors) handle(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	e.note(r.TypeDescription(), err)
}

// note records why a watch has failed, in the API server's own words if it has answered.
// It keeps the first of several errors with one reason: the others differ in a port or a time,
// and the status of a resource must not change with these.
func (e *watchErrors) note(kind string, err error) {
	if answered, ok := errors.AsType[*apierrors.StatusError](err); ok {
		err = answered
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byKind == nil {
		e.byKind = map[string]error{}
	}
	if apierrors.IsNotFound(err) {
		if e.gone == nil {
			e.gone = map[string]bool{}
		}
		e.gone[kind] = true
	}
	if was := e.byKind[kind]; was == nil || apierrors.ReasonForError(was) != apierrors.ReasonForError(err) {
		e.byKind[kind] = err
	}
}

// last returns the last error of the watch of a kind, or nil. It does not forget the error once
// the watch runs, so ask only while the watch has not synced.
func (e *watchErrors) last(kind schema.GroupVersionKind) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.byKind[kind.String()] // a Reflector names the type of an unstructured object like this
}
