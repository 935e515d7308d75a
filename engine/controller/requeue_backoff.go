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

// A reconcileFunc takes a resource one reconcileFunc further, and returns when to come again without an
// event, 0 for never. That is valid also with an error, which is tried again in any case.
type reconcileFunc func(ctx context.Context, key types.NamespacedName) (time.Duration, error)

// A backoffReconciler is a reconciler and the rate limiter of its queue. The library
// ignores RequeueAfter when a reconcile errors. But the error may be that of one component
// of several, and the timers of the others must not wait for its growing backoff, so the
// limiter returns the shorter of the two.
type backoffReconciler struct {
	reconcile reconcileFunc
	backoff   workqueue.TypedRateLimiter[ctrl.Request]
	// running know those that are under way, and lanes give workers to them; nil has one for
	// each.
	running *runningReconciles
	fair    *fairQueue
	kind    string

	mu sync.Mutex
	// requeueAfter are the times to come again of the requests whose last step failed.
	requeueAfter map[ctrl.Request]time.Duration
}

var (
	_ reconcile.Reconciler                     = (*backoffReconciler)(nil)
	_ workqueue.TypedRateLimiter[ctrl.Request] = (*backoffReconciler)(nil)
)

func newBackoffReconciler(s reconcileFunc, running *runningReconciles, kind string, l *fairQueue) *backoffReconciler {
	return &backoffReconciler{
		reconcile:    s,
		backoff:      workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry),
		running:      running,
		fair:         l,
		kind:         kind,
		requeueAfter: map[ctrl.Request]time.Duration{},
	}
}

// Reconcile implements reconcile.Reconciler.
func (p *backoffReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if p.fair != nil {
		end, left := p.fair.run(ctx, req, func(ctx context.Context) reconcileResult { return p.reconcileOnce(ctx, req) })
		if left {
			return ctrl.Result{}, nil
		}
		return end.result()
	}
	ctx, running := p.running.begin(ctx, p.kind, req)
	defer p.running.end(running)
	return p.reconcileOnce(ctx, req).result()
}

// result returns what the library is told.
func (e reconcileResult) result() (ctrl.Result, error) {
	if e.err != nil {
		return ctrl.Result{}, e.err
	}
	return ctrl.Result{RequeueAfter: e.again}, nil
}

// reconcileOnce takes a step, and notes when to come again if it fails.
func (p *backoffReconciler) reconcileOnce(ctx context.Context, req ctrl.Request) reconcileResult {
	again, err := p.recovered(withRequest(ctx, req), req)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requeueAfter[req] = again
	}
	return reconcileResult{again, err}
}

// errPanic is the error of a step that panicked where its status cannot say so.
var errPanic = errors.New("the operator has a fault; the log says where")

// recovered takes a step, and returns a panic as an error: it must not end the process. What
// it panicked with is not said, as nobody here knows what Secrets hold.
func (p *backoffReconciler) recovered(ctx context.Context, req ctrl.Request) (again time.Duration, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			log.FromContext(ctx).Error(nil, "the operator has a fault", "panic", fmt.Sprintf("%T", cause), "stack", string(debug.Stack()))
			again, err = 0, errPanic
		}
	}()
	return p.reconcile(ctx, req.NamespacedName)
}

// When implements workqueue.TypedRateLimiter. The queue asks once for each failure.
func (p *backoffReconciler) When(req ctrl.Request) time.Duration {
	delay := p.backoff.When(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	if due := p.requeueAfter[req]; due > 0 {
		delay = min(delay, due)
	}
	delete(p.requeueAfter, req)
	return delay
}

// Forget implements workqueue.TypedRateLimiter.
func (p *backoffReconciler) Forget(req ctrl.Request) { p.backoff.Forget(req) }

// NumRequeues implements workqueue.TypedRateLimiter.
func (p *backoffReconciler) NumRequeues(req ctrl.Request) int { return p.backoff.NumRequeues(req) }
