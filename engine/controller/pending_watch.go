package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/cluster"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// errNoAnswer is why a kind cannot be read of which the API server has not said so.
var errNoAnswer = errors.New("the API server has not listed it within " + syncTimeout.String())

// A pendingWatch is the watch of one kind for one controller until its cache has synced.
// Readers of the kind wait for that until a deadline, which begins with the first of them.
// After the deadline each reader gets an error at once, so that a kind that can never be
// listed holds no workers, and its resource is enqueued when the cache has synced.
type pendingWatch struct {
	kind schema.GroupVersionKind
	// synced is closed when the cache has the kind.
	synced <-chan struct{}
	errors *watchErrors
	// deadline is when waiting ends.
	deadline time.Time

	mu      sync.Mutex
	waiting map[ctrl.Request]bool
}

func newPendingWatch(kind schema.GroupVersionKind, synced <-chan struct{}, t *watchErrors) *pendingWatch {
	return &pendingWatch{kind: kind, synced: synced, errors: t, deadline: time.Now().Add(syncTimeout), waiting: map[ctrl.Request]bool{}}
}

// source returns a source of the events of an informer, which also enqueues the waiting
// resources once the informer has synced.
func (o *pendingWatch) source(informer cache.Informer, h handler.EventHandler, p ...predicate.Predicate) source.Source {
	events := &source.Informer{Informer: informer, Handler: h, Predicates: p}
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		go o.enqueueWaiters(ctx, q.Add)
		return events.Start(ctx, q)
	})
}

// enqueueWaiters adds the waiting resources to the queue once the cache has synced.
func (o *pendingWatch) enqueueWaiters(ctx context.Context, add func(ctrl.Request)) {
	select {
	case <-ctx.Done():
		return
	case <-o.synced:
	}
	o.mu.Lock()
	waiting := o.waiting
	o.waiting = nil
	o.mu.Unlock()
	for req := range waiting {
		add(req)
	}
}

// await waits until the cache has synced. It errors with a cluster.KindUnreadableError
// when that takes too long, or the API server has said that it is not allowed.
func (o *pendingWatch) await(ctx context.Context) error {
	select {
	case <-o.synced:
		return nil
	default:
	}
	tick := time.NewTicker(syncPoll)
	defer tick.Stop()
	for {
		cause := o.errors.last(o.kind)
		if apierrors.IsForbidden(cause) || !time.Now().Before(o.deadline) {
			return o.unreadable(ctx, cause)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.synced:
			return nil
		case <-tick.C:
		}
	}
}

// unreadable notes that the resource of the context waits, and returns the error that says
// why. It returns nil if the cache has synced meanwhile.
func (o *pendingWatch) unreadable(ctx context.Context, cause error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting == nil {
		return nil
	}
	if req, ok := ctx.Value(requestKey{}).(ctrl.Request); ok {
		o.waiting[req] = true
	}
	if cause == nil {
		cause = errNoAnswer
	}
	return &cluster.KindUnreadableError{Kind: o.kind, Cause: cause}
}

// requestKey is where the context of a step has the request that it is for.
type requestKey struct{}

// withRequest returns the context of a step for a request.
func withRequest(ctx context.Context, req ctrl.Request) context.Context {
	return context.WithValue(ctx, requestKey{}, req)
}

// watchErrors are the errors of the watches of one cache; its zero value has none.
type watchErrors struct {
	mu sync.Mutex
	of map[string]error
}

// handle is the handler of the cache's errors.
func (t *watchErrors) handle(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	t.note(r.TypeDescription(), err)
}

// note records why a watch has failed, in the API server's own words if it has answered.
// Of errors of one reason the first is kept: the others differ in a port or a time, and
// what a status says of them must not.
func (t *watchErrors) note(kind string, err error) {
	if answered, ok := errors.AsType[*apierrors.StatusError](err); ok {
		err = answered
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]error{}
	}
	if was := t.of[kind]; was == nil || apierrors.ReasonForError(was) != apierrors.ReasonForError(err) {
		t.of[kind] = err
	}
}

// last returns the last error of the watch of a kind, or nil. The error of a watch that
// runs by now is not cleared, so ask only while the watch has not synced.
func (t *watchErrors) last(kind schema.GroupVersionKind) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[kind.String()] // what a Reflector calls the type of an unstructured object
}
