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
	"operetta.dev/engine/controller/metrics"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/history"
	"operetta.dev/engine/worker"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A reconcileFunc reconciles a resource once, and returns when to reconcile it again without an
// event, 0 for never. The time is valid with an error, too, which is retried in any case.
type reconcileFunc func(ctx context.Context, key types.NamespacedName) (time.Duration, error)

// A backoffReconciler is the reconciler of a controller and the rate limiter of its queue.
// Controller-runtime ignores RequeueAfter if a reconcile errors. But the error may be that of one
// component of several, and the timers of the others must not wait for its growing backoff, so the
// limiter returns the shorter of the two.
type backoffReconciler struct {
	// TypedRateLimiter is the backoff.
	workqueue.TypedRateLimiter[ctrl.Request]

	reconcile reconcileFunc
	running   *runningReconciles
	// measured are the metrics of the controller.
	measured *metrics.Controller
	// fair is the queue of the controller, or nil for the library's.
	fair *fairQueue
	kind string
	// spent returns how much processor time the evaluations of a reconcile have taken.
	spent func(context.Context) time.Duration

	mu sync.Mutex
	// requeueAfter has the requests whose last reconcile errored.
	requeueAfter map[ctrl.Request]time.Duration
}

var (
	_ reconcile.Reconciler                     = (*backoffReconciler)(nil)
	_ workqueue.TypedRateLimiter[ctrl.Request] = (*backoffReconciler)(nil)
)

func newBackoffReconciler(f reconcileFunc, running *runningReconciles, kind string, fair *fairQueue, measured *metrics.Controller) *backoffReconciler {
	return &backoffReconciler{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, maxRetry),
		reconcile:        f,
		running:          running,
		measured:         measured,
		fair:             fair,
		kind:             kind,
		spent:            worker.ProcessorTimeSpent,
		requeueAfter:     map[ctrl.Request]time.Duration{},
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *backoffReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, running := r.running.begin(ctx, r.kind, req)
	defer r.running.end(running)
	began := time.Now()
	ctx, run := r.history().Begin(ctx, req.NamespacedName, r.uidOf(req))
	again, err := r.reconcileOnce(ctx, req)
	r.measured.Reconciled(resultOf(again, err), time.Since(began))
	run.End(resultOf(again, err), again, r.uidOf(req))
	if r.fair != nil {
		r.fair.finish(req, r.spent(ctx))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// resultOf returns how a reconcile has ended.
func resultOf(again time.Duration, err error) history.Result {
	switch {
	case err != nil:
		return history.Error
	case again > 0:
		return history.RequeueAfter
	}
	return history.Success
}

// history returns the history of the resources, or nil.
func (r *backoffReconciler) history() *history.KindLog {
	if r.fair == nil {
		return nil
	}
	return r.fair.history
}

// uidOf returns the UID of a resource, or "" if it is gone.
func (r *backoffReconciler) uidOf(req ctrl.Request) types.UID {
	if r.fair == nil || r.fair.uid == nil {
		return ""
	}
	return r.fair.uid(req.NamespacedName)
}

// reconcileOnce reconciles a resource, and notes when to reconcile it again if that errors.
func (r *backoffReconciler) reconcileOnce(ctx context.Context, req ctrl.Request) (time.Duration, error) {
	again, err := r.recovered(watch.WithRequest(ctx, req), req)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requeueAfter[req] = again
	}
	return again, err
}

// errPanic is the error of a reconcile that panicked where the status cannot say so.
var errPanic = errors.New("the operator panicked; the log says where")

// recovered reconciles a resource, and returns a panic as an error, as it must not end the process. It
// logs only the type of the panic's value, which may contain a Secret.
func (r *backoffReconciler) recovered(ctx context.Context, req ctrl.Request) (again time.Duration, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			log.FromContext(ctx).Error(nil, "a reconcile panicked", "panic", fmt.Sprintf("%T", cause), "stack", string(debug.Stack()))
			again, err = 0, errPanic
		}
	}()
	return r.reconcile(ctx, req.NamespacedName)
}

// When implements workqueue.TypedRateLimiter. The queue asks once for each error.
func (r *backoffReconciler) When(req ctrl.Request) time.Duration {
	delay := r.TypedRateLimiter.When(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if after := r.requeueAfter[req]; after > 0 {
		delay = min(delay, after)
	}
	delete(r.requeueAfter, req)
	r.history().Retry(req.NamespacedName, delay)
	return delay
}
