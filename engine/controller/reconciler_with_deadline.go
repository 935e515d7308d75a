package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A step takes a resource one step further, and returns when to come again without an
// event, 0 for never. That is valid also with an error, which is tried again in any case.
type step func(ctx context.Context, key types.NamespacedName) (time.Duration, error)

// A reconcilerWithDeadline is a reconciler and the rate limiter of its queue. The library
// ignores RequeueAfter when a reconcile errors. But the error may be that of one component
// of several, and the timers of the others must not wait for its growing backoff, so the
// limiter returns the shorter of the two.
type reconcilerWithDeadline struct {
	step    step
	backoff workqueue.TypedRateLimiter[ctrl.Request]
	// steps know those that are under way, and lanes give workers to them; nil has one for
	// each.
	steps *steps
	lanes *lanes
	kind  string

	mu sync.Mutex
	// due are the times to come again of the requests whose last step failed.
	due map[ctrl.Request]time.Duration
}

var (
	_ reconcile.Reconciler                     = (*reconcilerWithDeadline)(nil)
	_ workqueue.TypedRateLimiter[ctrl.Request] = (*reconcilerWithDeadline)(nil)
)

func newReconcilerWithDeadline(s step, running *steps, kind string, l *lanes) *reconcilerWithDeadline {
	return &reconcilerWithDeadline{
		step:    s,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
		steps:   running,
		lanes:   l,
		kind:    kind,
		due:     map[ctrl.Request]time.Duration{},
	}
}

// Reconcile implements reconcile.Reconciler.
func (p *reconcilerWithDeadline) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if p.lanes != nil {
		end, left := p.lanes.take(ctx, req, func(ctx context.Context) stepEnd { return p.take(ctx, req) })
		if left {
			return ctrl.Result{}, nil
		}
		return end.result()
	}
	ctx, running := p.steps.begin(ctx, p.kind, req)
	defer p.steps.end(running)
	return p.take(ctx, req).result()
}

// result returns what the library is told.
func (e stepEnd) result() (ctrl.Result, error) {
	if e.err != nil {
		return ctrl.Result{}, e.err
	}
	return ctrl.Result{RequeueAfter: e.again}, nil
}

// take takes a step, and notes when to come again if it fails.
func (p *reconcilerWithDeadline) take(ctx context.Context, req ctrl.Request) stepEnd {
	again, err := p.recovered(withRequest(ctx, req), req)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.due[req] = again
	}
	return stepEnd{again, err}
}

// errPanic is the error of a step that panicked where its status cannot say so.
var errPanic = errors.New("the operator has a fault; the log says where")

// recovered takes a step, and returns a panic as an error: it must not end the process. What
// it panicked with is not said, as nobody here knows what Secrets hold.
func (p *reconcilerWithDeadline) recovered(ctx context.Context, req ctrl.Request) (again time.Duration, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			log.FromContext(ctx).Error(nil, "the operator has a fault", "panic", fmt.Sprintf("%T", cause), "stack", string(debug.Stack()))
			again, err = 0, errPanic
		}
	}()
	return p.step(ctx, req.NamespacedName)
}

// When implements workqueue.TypedRateLimiter. The queue asks once for each failure.
func (p *reconcilerWithDeadline) When(req ctrl.Request) time.Duration {
	delay := p.backoff.When(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	if due := p.due[req]; due > 0 {
		delay = min(delay, due)
	}
	delete(p.due, req)
	return delay
}

// Forget implements workqueue.TypedRateLimiter.
func (p *reconcilerWithDeadline) Forget(req ctrl.Request) { p.backoff.Forget(req) }

// NumRequeues implements workqueue.TypedRateLimiter.
func (p *reconcilerWithDeadline) NumRequeues(req ctrl.Request) int { return p.backoff.NumRequeues(req) }
