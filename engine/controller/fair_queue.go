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
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// A fairQueue is the queue of a controller. It keeps resources that are slow, or that may be, from
// taking all workers of a kind:
//
//   - One worker is left to resources that are known to be quick: their last reconcile was, and
//     nobody has changed them since.
//   - Resources that are known to be slow have one worker.
//   - A reconcile that goes on for seconds without an answer of the API server is detached: it loses
//     its worker, as long as not too many are detached. It cannot be stopped, so its resource is not
//     reconciled again before it ends by itself.
//   - While a namespace has such a reconcile, its other resources have one worker, so that the
//     rest is for other tenants.
//
// Requests that have to wait are parked beside the queue: no worker waits for another one.
type fairQueue struct {
	// PriorityQueue is the queue of the library, which newQueue creates.
	priorityqueue.PriorityQueue[ctrl.Request]

	running *runningReconciles
	kind    string
	// unprovenWorkers is how many workers resources have that are not known to be quick.
	unprovenWorkers int

	mu       sync.Mutex
	speeds   *lru.Cache // of requests
	assigned map[ctrl.Request]*assignment
	// parked are the requests that wait for a worker, those of the highest priority first, and
	// then the first to come. priorities has the priority of each.
	parked     []parked
	priorities map[ctrl.Request]int
}

// speed says whether the reconciles of a resource are quick; "" is unknown.
type speed string

const (
	quick speed = "Quick"
	slow  speed = "Slow"
)

// An assignment is a request that has a worker, or whose reconcile goes on without one.
type assignment struct {
	speed     speed
	reconcile *runningReconcile
	// changed says that somebody has changed the resource, or what it reads, since the reconcile began.
	changed bool
	// detached says that the reconcile goes on without a worker, and left that the worker has gone.
	detached, left bool
	// ended is the result of the reconcile, or nil while it runs.
	ended *reconcileResult
}

// A reconcileResult is what a reconcile returns.
type reconcileResult struct {
	again time.Duration
	err   error
}

// parked is a request that waits for a worker.
type parked struct {
	request  ctrl.Request
	priority int
}

// newFairQueue returns the queue of the controller of a kind with some workers.
func newFairQueue(running *runningReconciles, kind string, workers int) *fairQueue {
	return &fairQueue{
		running: running, kind: kind, unprovenWorkers: max(1, workers-1),
		speeds: lru.New(maxTracked), assigned: map[ctrl.Request]*assignment{}, priorities: map[ctrl.Request]int{},
	}
}

// newQueue is the NewQueue option of the controller.
func (q *fairQueue) newQueue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) requestQueue {
	q.PriorityQueue = priorityqueue.New(name, func(o *priorityqueue.Opts[ctrl.Request]) { o.RateLimiter = limiter })
	return q
}

// GetWithPriority implements priorityqueue.PriorityQueue. It returns a request that may have a worker.
func (q *fairQueue) GetWithPriority() (ctrl.Request, int, bool) {
	for {
		req, priority, shutdown := q.PriorityQueue.GetWithPriority()
		if shutdown || q.admit(req, priority) {
			return req, priority, shutdown
		}
		q.PriorityQueue.Done(req)
	}
}

// Get implements workqueue.TypedInterface.
func (q *fairQueue) Get() (ctrl.Request, bool) {
	req, _, shutdown := q.GetWithPriority()
	return req, shutdown
}

// Forget implements workqueue.TypedRateLimitingInterface. It does nothing for a detached reconcile, which
// has no result yet.
func (q *fairQueue) Forget(req ctrl.Request) {
	if !q.runsDetached(req) {
		q.PriorityQueue.Forget(req)
	}
}

// Done implements workqueue.TypedInterface.
func (q *fairQueue) Done(req ctrl.Request) {
	if q.release(req) {
		q.PriorityQueue.Done(req)
	}
	q.assignParked()
}

// forgetSpeed forgets that a resource was quick, because somebody has changed what its evaluation
// depends on. A reconcile that runs may see the change or not, so it proves nothing.
func (q *fairQueue) forgetSpeed(req ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.assigned[req]; a != nil {
		a.changed = true
		if a.speed == quick {
			a.speed = ""
		}
	}
	if q.speedOf(req) == quick {
		q.speeds.Remove(req)
	}
}

// speedOf returns the speed of a resource. It is unknown again for those that were reconciled least
// recently.
func (q *fairQueue) speedOf(req ctrl.Request) speed {
	known, _ := q.speeds.Get(req)
	s, _ := known.(speed)
	return s
}

// forgettingSpeed returns a function that maps Patches to resources, and notes that these have changed.
func (q *fairQueue) forgettingSpeed(requests handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		out := requests(ctx, o)
		for _, req := range out {
			q.forgetSpeed(req)
		}
		return out
	}
}

// noteChanges returns a predicate of the events of resources that lets all of them through.
func (q *fairQueue) noteChanges() predicate.Predicate {
	note := func(o client.Object) bool {
		q.forgetSpeed(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		return true
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return note(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return resynced(e) || note(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return note(e.Object) },
	}
}

// admit reports whether a request may keep the worker that has taken it from the queue. It parks a
// request that may not.
func (q *fairQueue) admit(req ctrl.Request, priority int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.assigned[req] != nil {
		return true // assignParked has given it one
	}
	was, waits := q.priorities[req]
	may := q.workerUse().allows(req, q.speedOf(req))
	if waits && (may || priority > was) {
		q.unpark(slices.IndexFunc(q.parked, func(p parked) bool { return p.request == req }))
		waits = false
	}
	switch {
	case may:
		q.assigned[req] = &assignment{speed: q.speedOf(req)}
	case !waits:
		q.park(req, priority)
	}
	return may
}

// park adds a request behind the parked ones of its priority.
func (q *fairQueue) park(req ctrl.Request, priority int) {
	at, _ := slices.BinarySearchFunc(q.parked, priority, func(p parked, priority int) int {
		if p.priority >= priority {
			return -1
		}
		return 1
	})
	q.parked = slices.Insert(q.parked, at, parked{req, priority})
	q.priorities[req] = priority
}

func (q *fairQueue) unpark(at int) {
	delete(q.priorities, q.parked[at].request)
	q.parked = slices.Delete(q.parked, at, at+1)
}

// A workerUse says which resources have the workers that are not left to quick ones.
type workerUse struct {
	// free is how many of these workers are free, and slow whether a slow resource has one.
	free int
	slow bool
	// hung are the namespaces with a reconcile that hangs, surprising those where it is the reconcile of
	// a quick resource, and working those that have a worker.
	hung, surprising, working map[string]bool
}

// workerUse returns the present use of workers.
func (q *fairQueue) workerUse() workerUse {
	out := workerUse{free: q.unprovenWorkers, hung: map[string]bool{}, surprising: map[string]bool{}, working: map[string]bool{}}
	for req, a := range q.assigned {
		if a.detached || a.reconcile != nil && a.reconcile.sinceAnswer() > detachAfter {
			out.hung[req.Namespace] = true
			out.surprising[req.Namespace] = out.surprising[req.Namespace] || a.speed == quick
		}
	}
	for req, a := range q.assigned {
		if a.speed == quick && !out.surprising[req.Namespace] {
			continue
		}
		out.slow = out.slow || a.speed == slow
		if !a.detached {
			out.free--
			out.working[req.Namespace] = true
		}
	}
	return out
}

// allows reports whether a resource may have a worker. A quick resource can hang without a change of
// itself, because somebody has changed its objects. Then the other quick resources of its namespace
// may be next, and count as unproven.
func (u workerUse) allows(req ctrl.Request, is speed) bool {
	if is == quick && !u.surprising[req.Namespace] {
		return true
	}
	mayBeSlow, mayHang := is != slow || !u.slow, !u.hung[req.Namespace] || !u.working[req.Namespace]
	return u.free > 0 && mayBeSlow && mayHang
}

// assignParked gives the free workers to parked requests.
func (q *fairQueue) assignParked() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.workerUse()
	for i := 0; i < len(q.parked) && now.free > 0; {
		p := q.parked[i]
		is := q.speedOf(p.request)
		if !now.allows(p.request, is) {
			i++
			continue
		}
		q.unpark(i)
		q.assigned[p.request] = &assignment{speed: is}
		q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(p.priority)}, p.request)
		now = q.workerUse()
	}
}

// runsDetached reports whether the reconcile of a request goes on without a worker.
func (q *fairQueue) runsDetached(req ctrl.Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.assigned[req]
	return a != nil && a.detached
}

// run runs a reconcile, and reports whether it was detached: complete then handles its result when it
// ends.
func (q *fairQueue) run(ctx context.Context, req ctrl.Request, do func(context.Context) reconcileResult) (reconcileResult, bool) {
	ctx, running := q.running.begin(ctx, q.kind, req)
	q.mu.Lock()
	if q.assigned[req] == nil {
		q.assigned[req] = &assignment{}
	}
	q.assigned[req].reconcile = running
	q.mu.Unlock()
	done := make(chan reconcileResult, 1)
	go func() {
		end := do(ctx)
		q.running.end(running)
		q.finish(ctx, req, end)
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
			left := detachAfter - running.sinceAnswer()
			switch {
			case ctx.Err() != nil:
				return reconcileResult{}, true // the process is about to end, and the reconcile with it
			case left > 0:
				patience.Reset(left)
			case q.detach(req):
				return reconcileResult{}, true
			default:
				patience.Reset(detachAgain)
			}
		}
	}
}

// detach takes the worker from a reconcile unless that has ended, and reports whether it did.
func (q *fairQueue) detach(req ctrl.Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.assigned[req]
	a.detached = a.ended == nil && q.running.detach()
	return a.detached
}

// finish notes the result of a reconcile, and how quick it was.
func (q *fairQueue) finish(ctx context.Context, req ctrl.Request, end reconcileResult) {
	q.mu.Lock()
	a := q.assigned[req]
	if a == nil {
		q.mu.Unlock() // the process is about to end
		return
	}
	a.ended = &end
	is := quick
	if a.detached || time.Duration(a.reconcile.evaluating.Load()) > slowEvaluation {
		is = slow
	}
	if is == quick && a.changed {
		q.speeds.Remove(req)
	} else {
		q.speeds.Add(req, is)
	}
	if a.detached && end.err != nil {
		log.FromContext(ctx).Error(end.err, "Reconciler error")
	}
	left := a.left
	q.mu.Unlock()
	if left {
		q.complete(req, end)
	}
}

// release takes the worker from a request, and reports whether its reconcile has ended.
func (q *fairQueue) release(req ctrl.Request) bool {
	q.mu.Lock()
	a := q.assigned[req]
	if a == nil || !a.detached {
		delete(q.assigned, req)
		q.mu.Unlock()
		return true
	}
	a.left = true
	ended := a.ended
	q.mu.Unlock()
	if ended != nil {
		q.complete(req, *ended)
	}
	return false
}

// complete does for a detached reconcile what the library does for others at their end.
func (q *fairQueue) complete(req ctrl.Request, end reconcileResult) {
	q.running.endDetached()
	q.mu.Lock()
	delete(q.assigned, req)
	q.mu.Unlock()
	switch {
	case end.err != nil:
		q.PriorityQueue.AddRateLimited(req)
	case end.again > 0:
		q.PriorityQueue.Forget(req)
		q.PriorityQueue.AddAfter(req, end.again)
	default:
		q.PriorityQueue.Forget(req)
	}
	q.PriorityQueue.Done(req)
	q.assignParked()
}
