package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The delays between tries of a reconcile that fails: they double from the first
// to the last. An event reconciles at once all the same.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// A step takes a resource one step further, and returns when to come again without an
// event, 0 for never. That is valid also with an error, which is tried again in any case.
type step func(ctx context.Context, key types.NamespacedName) (time.Duration, error)

// punctual is a reconciler and the limiter of its queue. The library takes no time to
// come again beside an error. But what failed may be one component of several: the
// timers of the others must not wait until its delay, which grows, is over.
type punctual struct {
	step    step
	backoff workqueue.TypedRateLimiter[reconcile.Request]

	mu sync.Mutex
	// due are the times to come again of the requests whose last step failed.
	due map[reconcile.Request]time.Duration
}

var (
	_ reconcile.Reconciler                          = (*punctual)(nil)
	_ workqueue.TypedRateLimiter[reconcile.Request] = (*punctual)(nil)
)

func newPunctual(s step) *punctual {
	return &punctual{
		step:    s,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		due:     map[reconcile.Request]time.Duration{},
	}
}

// Reconcile implements reconcile.Reconciler.
func (p *punctual) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	again, err := p.step(withRequest(ctx, req), req.NamespacedName)
	if err == nil {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due[req] = again
	return reconcile.Result{}, err
}

// When implements workqueue.TypedRateLimiter. The queue asks once for each failure.
func (p *punctual) When(req reconcile.Request) time.Duration {
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
func (p *punctual) Forget(req reconcile.Request) { p.backoff.Forget(req) }

// NumRequeues implements workqueue.TypedRateLimiter.
func (p *punctual) NumRequeues(req reconcile.Request) int { return p.backoff.NumRequeues(req) }
