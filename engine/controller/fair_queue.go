package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// fairQueue keep resources that are slow, or that may be, from taking all workers of a kind:
//
//   - One worker is left to those that are known to be quick: whose last step was, and that
//     nobody has changed since.
//   - Those that are known to be slow have one worker.
//   - A step that goes on for seconds without an answer of the API server loses its worker,
//     as long as there are not too many of these. It cannot be ended, so its resource is not
//     taken up again before it does by itself.
//   - While a namespace has such a step, its other resources have one worker, so that the
//     rest is for other tenants.
//
// What has to wait waits beside the queue: no worker waits for another one.
type fairQueue struct {
	running *runningReconciles
	kind    string
	// unprovenWorkers is how many workers those have that are not known to be quick.
	unprovenWorkers int
	queue           priorityqueue.PriorityQueue[ctrl.Request]

	mu       sync.Mutex
	speeds   *lru.Cache // of requests
	assigned map[ctrl.Request]*assignment
	// parked are the requests that wait for a worker, those of the highest priority first, and
	// then the first to come. Priorities has that of each.
	parked     []parked
	priorities map[ctrl.Request]int
}

// speed is what is known of a resource; "" is nothing.
type speed string

const (
	quick speed = "Quick"
	slow  speed = "Slow"
)

// assignment is a request that has a worker, or whose step goes on without one.
type assignment struct {
	speed     speed
	reconcile *runningReconcile
	// changed says that somebody has changed what the resource is evaluated with since.
	changed bool
	// detached says that the step goes on without a worker, and left that the worker knows.
	detached, left bool
	// ended is what came of the step.
	ended *reconcileResult
}

// reconcileResult is what a step returns.
type reconcileResult struct {
	again time.Duration
	err   error
}

// parked is a request that waits for a worker.
type parked struct {
	request  ctrl.Request
	priority int
}

// newFairQueue returns the lanes of the controller of a kind with so many workers.
func newFairQueue(s *runningReconciles, kind string, workers int) *fairQueue {
	return &fairQueue{
		running: s, kind: kind, unprovenWorkers: max(1, workers-1),
		speeds: lru.New(maxTracked), assigned: map[ctrl.Request]*assignment{}, priorities: map[ctrl.Request]int{},
	}
}

// newQueue returns the controller's queue.
func (l *fairQueue) newQueue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) requestQueue {
	l.queue = priorityqueue.New(name, func(o *priorityqueue.Opts[ctrl.Request]) { o.RateLimiter = limiter })
	return &laneQueue{PriorityQueue: l.queue, lanes: l}
}

// laneQueue is a queue that gives out what may have a worker.
type laneQueue struct {
	priorityqueue.PriorityQueue[ctrl.Request]

	lanes *fairQueue
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *laneQueue) GetWithPriority() (ctrl.Request, int, bool) {
	for {
		req, priority, shutdown := q.PriorityQueue.GetWithPriority()
		if shutdown || q.lanes.admit(req, priority) {
			return req, priority, shutdown
		}
		q.PriorityQueue.Done(req)
	}
}

// Get implements workqueue.TypedInterface.
func (q *laneQueue) Get() (ctrl.Request, bool) {
	req, _, shutdown := q.GetWithPriority()
	return req, shutdown
}

// Forget implements workqueue.TypedRateLimitingInterface. Nothing has come yet of a step that
// goes on without its worker.
func (q *laneQueue) Forget(req ctrl.Request) {
	if !q.lanes.runsDetached(req) {
		q.PriorityQueue.Forget(req)
	}
}

// Done implements workqueue.TypedInterface.
func (q *laneQueue) Done(req ctrl.Request) {
	if q.lanes.release(req) {
		q.PriorityQueue.Done(req)
	}
	q.lanes.assignParked()
}

// forgetSpeed forgets that a resource was quick: somebody has changed what it is evaluated with. A
// step that is under way may see the change or not, so that it proves nothing.
func (l *fairQueue) forgetSpeed(req ctrl.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.assigned[req]; b != nil {
		b.changed = true
		if b.speed == quick {
			b.speed = ""
		}
	}
	if l.speedOf(req) == quick {
		l.speeds.Remove(req)
	}
}

// speedOf returns what is known of a resource. It is forgotten of those that were taken up
// least recently.
func (l *fairQueue) speedOf(req ctrl.Request) speed {
	known, _ := l.speeds.Get(req)
	p, _ := known.(speed)
	return p
}

// forgettingSpeed returns what maps the objects of others to resources that are evaluated with them.
func (l *fairQueue) forgettingSpeed(requests handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		out := requests(ctx, o)
		for _, req := range out {
			l.forgetSpeed(req)
		}
		return out
	}
}

// resourceHandler returns a handler of the events of the resources themselves.
func (l *fairQueue) resourceHandler(inner handler.EventHandler) handler.EventHandler {
	doubt := func(o client.Object) { l.forgetSpeed(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}) }
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) {
			doubt(e.Object)
			inner.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) {
			if !resynced(e) {
				doubt(e.ObjectNew)
			}
			inner.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) {
			doubt(e.Object)
			inner.Delete(ctx, e, q)
		},
		GenericFunc: inner.Generic,
	}
}

// admit reports whether a request gets the worker that has taken it. One that does not is
// parked.
func (l *fairQueue) admit(req ctrl.Request, priority int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.assigned[req] != nil {
		return true // it has been given one while it was parked
	}
	was, waits := l.priorities[req]
	may := l.workerUse().allows(req, l.speedOf(req))
	if waits && (may || priority > was) {
		l.unpark(slices.IndexFunc(l.parked, func(p parked) bool { return p.request == req }))
		waits = false
	}
	switch {
	case may:
		l.assigned[req] = &assignment{speed: l.speedOf(req)}
	case !waits:
		l.park(req, priority)
	}
	return may
}

// park makes a request wait behind those of its priority.
func (l *fairQueue) park(req ctrl.Request, priority int) {
	at, _ := slices.BinarySearchFunc(l.parked, priority, func(p parked, priority int) int {
		if p.priority >= priority {
			return -1
		}
		return 1
	})
	l.parked = slices.Insert(l.parked, at, parked{req, priority})
	l.priorities[req] = priority
}

func (l *fairQueue) unpark(at int) {
	delete(l.priorities, l.parked[at].request)
	l.parked = slices.Delete(l.parked, at, at+1)
}

// An workerUse is who has the workers that are not left to what is quick.
type workerUse struct {
	// free is how many of these workers are, and slow whether a slow one has its own.
	free int
	slow bool
	// hanging are the namespaces that have a step which hangs, surprising those where that is
	// one of a resource that was quick, and working those that have a worker.
	hanging, surprising, working map[string]bool
}

// workerUse returns who has workers now.
func (l *fairQueue) workerUse() workerUse {
	out := workerUse{free: l.unprovenWorkers, hanging: map[string]bool{}, surprising: map[string]bool{}, working: map[string]bool{}}
	for req, b := range l.assigned {
		if b.detached || b.reconcile != nil && b.reconcile.sinceAnswer() > detachAfter {
			out.hanging[req.Namespace] = true
			out.surprising[req.Namespace] = out.surprising[req.Namespace] || b.speed == quick
		}
	}
	for req, b := range l.assigned {
		if b.speed == quick && !out.surprising[req.Namespace] {
			continue
		}
		out.slow = out.slow || b.speed == slow
		if !b.detached {
			out.free--
			out.working[req.Namespace] = true
		}
	}
	return out
}

// allows reports whether a resource may have a worker. Where one that was quick hangs, as its
// objects can be changed as well, the others of its namespace may be next.
func (o workerUse) allows(req ctrl.Request, is speed) bool {
	return is == quick && !o.surprising[req.Namespace] || o.free > 0 && (is != slow || !o.slow) && (!o.hanging[req.Namespace] || !o.working[req.Namespace])
}

// assignParked gives workers to requests that are parked.
func (l *fairQueue) assignParked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.workerUse()
	for i := 0; i < len(l.parked) && now.free > 0; {
		p := l.parked[i]
		is := l.speedOf(p.request)
		if !now.allows(p.request, is) {
			i++
			continue
		}
		l.unpark(i)
		l.assigned[p.request] = &assignment{speed: is}
		l.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(p.priority)}, p.request)
		now = l.workerUse()
	}
}

// runsDetached reports whether the step of a request goes on without a worker.
func (l *fairQueue) runsDetached(req ctrl.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.assigned[req]
	return b != nil && b.detached
}

// run takes a step, and reports whether the worker has left it: what comes of it is then
// acted upon when it ends.
func (l *fairQueue) run(ctx context.Context, req ctrl.Request, do func(context.Context) reconcileResult) (reconcileResult, bool) {
	ctx, step := l.running.begin(ctx, l.kind, req)
	l.mu.Lock()
	if l.assigned[req] == nil {
		l.assigned[req] = &assignment{}
	}
	l.assigned[req].reconcile = step
	l.mu.Unlock()
	done := make(chan reconcileResult, 1)
	go func() {
		end := do(ctx)
		l.running.end(step)
		l.finish(ctx, req, end)
		done <- end
	}()
	patience := time.NewTimer(detachAfter)
	defer patience.Stop()
	stopping := ctx.Done()
	for {
		select {
		case end := <-done:
			return end, false
		case <-stopping:
			stopping = nil
			patience.Reset(stopPatience)
		case <-patience.C:
			left := detachAfter - step.sinceAnswer()
			switch {
			case ctx.Err() != nil:
				return reconcileResult{}, true // the process is about to end, and the step with it
			case left > 0:
				patience.Reset(left)
			case l.detach(req):
				return reconcileResult{}, true
			default:
				patience.Reset(detachAgain)
			}
		}
	}
}

// detach takes the worker from a step that has not ended, and reports whether it did.
func (l *fairQueue) detach(req ctrl.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.assigned[req]
	b.detached = b.ended == nil && l.running.detach()
	return b.detached
}

// finish notes what came of a step, and how quick it was.
func (l *fairQueue) finish(ctx context.Context, req ctrl.Request, end reconcileResult) {
	l.mu.Lock()
	b := l.assigned[req]
	if b == nil {
		l.mu.Unlock() // the process is about to end
		return
	}
	b.ended = &end
	is := quick
	if b.detached || time.Duration(b.reconcile.evaluating.Load()) > slowEvaluation {
		is = slow
	}
	if is == quick && b.changed {
		l.speeds.Remove(req)
	} else {
		l.speeds.Add(req, is)
	}
	if b.detached && end.err != nil {
		log.FromContext(ctx).Error(end.err, "Reconciler error")
	}
	left := b.left
	l.mu.Unlock()
	if left {
		l.complete(req, end)
	}
}

// release takes the worker from a request, and reports whether its step has ended.
func (l *fairQueue) release(req ctrl.Request) bool {
	l.mu.Lock()
	b := l.assigned[req]
	if b == nil || !b.detached {
		delete(l.assigned, req)
		l.mu.Unlock()
		return true
	}
	b.left = true
	ended := b.ended
	l.mu.Unlock()
	if ended != nil {
		l.complete(req, *ended)
	}
	return false
}

// complete does for a step that has gone on without a worker what the library does when one
// ends.
func (l *fairQueue) complete(req ctrl.Request, end reconcileResult) {
	l.running.attach()
	l.mu.Lock()
	delete(l.assigned, req)
	l.mu.Unlock()
	switch {
	case end.err != nil:
		l.queue.AddRateLimited(req)
	case end.again > 0:
		l.queue.Forget(req)
		l.queue.AddAfter(req, end.again)
	default:
		l.queue.Forget(req)
	}
	l.queue.Done(req)
	l.assignParked()
}
