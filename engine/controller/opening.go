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

// syncTimeout is how long those who ask for a kind wait for its watch to begin. It may
// never: a list that is not allowed is tried for ever, and must not hold workers.
const syncTimeout = 20 * time.Second

// syncPoll is how often they look whether something is wrong.
const syncPoll = 20 * time.Millisecond

// errNoAnswer is why a kind cannot be read of which the API server has not said so.
var errNoAnswer = errors.New("the API server has not listed it within " + syncTimeout.String())

// An opening is the watch of one kind for one controller until it has begun. Whoever
// asks for the kind waits for that, but only for some time after the first has asked;
// later all are told at once what is wrong, and the resources that they are about are
// reconciled once it has begun.
type opening struct {
	kind schema.GroupVersionKind
	// begun is closed when the watch has begun.
	begun    <-chan struct{}
	troubles *troubles
	// deadline is when waiting ends.
	deadline time.Time

	mu      sync.Mutex
	waiting map[ctrl.Request]bool
}

func newOpening(kind schema.GroupVersionKind, begun <-chan struct{}, t *troubles) *opening {
	return &opening{kind: kind, begun: begun, troubles: t, deadline: time.Now().Add(syncTimeout), waiting: map[ctrl.Request]bool{}}
}

// source returns what feeds a controller's queue with the events of an informer, and
// with who waits for it to begin.
func (o *opening) source(informer cache.Informer, h handler.EventHandler, p ...predicate.Predicate) source.Source {
	events := &source.Informer{Informer: informer, Handler: h, Predicates: p}
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		go o.wake(ctx, q.Add)
		return events.Start(ctx, q)
	})
}

// wake reconciles who waits, once the watch has begun.
func (o *opening) wake(ctx context.Context, add func(ctrl.Request)) {
	select {
	case <-ctx.Done():
		return
	case <-o.begun:
	}
	o.mu.Lock()
	waiting := o.waiting
	o.waiting = nil
	o.mu.Unlock()
	for req := range waiting {
		add(req)
	}
}

// await waits until the watch has begun. It errors with a cluster.KindUnreadableError
// when that takes too long, or the API server has said that it is not allowed.
func (o *opening) await(ctx context.Context) error {
	select {
	case <-o.begun:
		return nil
	default:
	}
	tick := time.NewTicker(syncPoll)
	defer tick.Stop()
	for {
		cause := o.troubles.with(o.kind)
		if apierrors.IsForbidden(cause) || !time.Now().Before(o.deadline) {
			return o.unreadable(ctx, cause)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.begun:
			return nil
		case <-tick.C:
		}
	}
}

// unreadable makes the resource that asks one that waits, and returns why it has to;
// nil if the watch has begun meanwhile.
func (o *opening) unreadable(ctx context.Context, cause error) error {
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

// troubles are the errors of the watches of one cache; its zero value has none.
type troubles struct {
	mu sync.Mutex
	of map[string]error
}

// handle is the handler of the cache's errors.
func (t *troubles) handle(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	t.note(r.TypeDescription(), err)
}

// note records why a watch has failed, in the API server's own words if it has answered.
// Of errors of one reason the first is kept: the others differ in a port or a time, and
// what a status says of them must not.
func (t *troubles) note(kind string, err error) {
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

// with returns the last error of the watch of a kind, or nil. It has none while it has
// not failed; what is here of one that runs is of the past.
func (t *troubles) with(kind schema.GroupVersionKind) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[kind.String()] // what a Reflector calls the type of an unstructured object
}
