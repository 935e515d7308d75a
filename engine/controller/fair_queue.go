package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"operetta.dev/engine/history"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// A fairQueue is the queue of a controller. It keeps resources that are slow, or that may be, from
// taking all workers of a kind:
//
//   - One worker is left to resources that are known to be quick: their last reconcile was, and
//     no client has changed them since.
//   - Resources that are known to be slow have one worker.
//   - The resources of namespaces that are suspect, because one of theirs was lately too much to
//     evaluate, have one worker, whether they were quick or not.
//   - A reconcile that takes long, for whatever reason, gives its worker to others, and its namespace has
//     only a share of those that there are; namespaceWorkers says how many.
//
// Requests that have to wait are parked beside the queue: no worker waits for another one.
//
// The queue hands out the most urgent request, and each turnEvery-th time the one that has waited longest.
type fairQueue struct {
	// PriorityQueue is the queue of the library, which newQueue creates, and limiter has the delays of retries.
	priorityqueue.PriorityQueue[ctrl.Request]

	limiter workqueue.TypedRateLimiter[ctrl.Request]

	// suspect reports whether a namespace is suspect.
	suspect func(namespace string) bool
	// unprovenWorkers is how many workers resources have that are not known to be quick.
	unprovenWorkers int
	// workers are those who ask for requests; each has one of them while it waits for a request, and until its reconcile is long.
	workers workers

	mu       sync.Mutex
	speeds   *lru.Cache // of requests
	long     longReconciles
	assigned map[ctrl.Request]*assignment
	// parked are the requests that wait for a worker, those of the highest priority first, and
	// then the first to come. priorities has the priority of each.
	parked     []parked
	priorities map[ctrl.Request]int
	turns      requestTurns
	// history is told why requests are added, and when they are handed out. nil remembers nothing.
	history *history.KindLog
	// uid returns the UID of a resource for the history, or "" for one that is gone.
	uid func(types.NamespacedName) types.UID
	// own are the priorities that requests had before they were parked or given a turn, until they have a worker.
	own map[ctrl.Request]int
}

// speed says whether the reconciles of a resource are quick; "" is unknown.
type speed string

const (
	quick speed = "Quick"
	slow  speed = "Slow"
)

// An assignment is a request that has a worker.
type assignment struct {
	speed speed
	// changed says that a client has changed the resource, or what it reads, since the reconcile began.
	changed bool
	// long says that the reconcile has taken long by now, and left its worker to others. timer ends when it has.
	long  bool
	timer *time.Timer
}

// parked is a request that waits for a worker.
type parked struct {
	request  ctrl.Request
	priority int
}

// newFairQueue returns the queue of a controller with some workers.
func newFairQueue(workers int, suspect func(namespace string) bool) *fairQueue {
	return &fairQueue{
		suspect: suspect, unprovenWorkers: max(1, workers-1), workers: newWorkers(workers),
		speeds: lru.New(maxTracked), long: newLongReconciles(), assigned: map[ctrl.Request]*assignment{}, priorities: map[ctrl.Request]int{},
		turns: newRequestTurns(), own: map[ctrl.Request]int{},
	}
}

// newQueue is the NewQueue option of the controller.
func (q *fairQueue) newQueue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) requestQueue {
	q.PriorityQueue = priorityqueue.New(name, func(o *priorityqueue.Opts[ctrl.Request]) { o.RateLimiter = limiter })
	q.limiter = limiter
	return q
}

// Add implements workqueue.TypedInterface.
func (q *fairQueue) Add(req ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddBecause implements watch.Noter.
func (q *fairQueue) AddBecause(t history.Trigger, req ctrl.Request) {
	q.history.Note(req.NamespacedName, history.Event{Trigger: t})
	q.Add(req)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *fairQueue) AddAfter(req ctrl.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, req)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *fairQueue) AddRateLimited(req ctrl.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *fairQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	for _, req := range requests {
		one := o
		if one.RateLimited {
			one.RateLimited = false
			if delay := q.limiter.When(req); one.After == 0 || delay < one.After {
				one.After = delay
			}
		}
		q.add(one, req)
	}
}

// add adds a request to the library. Nobody else uses the queue meanwhile: a request that had its turn before the library has
// it would be handed out for its turn, and then once more.
func (q *fairQueue) add(o priorityqueue.AddOpts, req ctrl.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	priority := ptr.Deref(o.Priority, 0)
	q.turns.enter(req, priority, time.Now().Add(o.After))
	if own, has := q.own[req]; has {
		q.own[req] = max(own, priority)
	}
	q.PriorityQueue.AddWithOpts(o, req)
}

// GetWithPriority implements priorityqueue.PriorityQueue. It returns a request that may have a worker, with the
// priority that its timers and retries have, which are never urgent.
func (q *fairQueue) GetWithPriority() (ctrl.Request, int, bool) {
	q.workers.take()
	for {
		q.takeTurn()
		req, priority, shutdown := q.PriorityQueue.GetWithPriority()
		switch {
		case shutdown:
			q.workers.leave() // so that the next one learns of it
			return req, 0, true
		case q.handOut(req, priority):
			q.history.NoteDequeued(req.NamespacedName)
			q.watchDuration(req)
			return req, min(q.takeOwn(req, priority), 0), false
		}
		q.PriorityQueue.Done(req)
	}
}

// handOut notes that the library has handed out a request. It reports false if a worker has had it already, or if none may: then
// it is parked. One that is added at this very moment may lose its turn, and is handed out by its priority.
func (q *fairQueue) handOut(req ctrl.Request, priority int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.turns.handOut(req, priority) && q.admit(req, priority)
}

// takeOwn returns the priority that a request had before it was parked or given a turn, or else the one with which
// it was handed out.
func (q *fairQueue) takeOwn(req ctrl.Request, priority int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own, has := q.own[req]; has {
		delete(q.own, req)
		return own
	}
	return priority
}

// takeTurn puts the request whose turn it is before all others.
func (q *fairQueue) takeTurn() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if req, priority, has := q.turns.give(time.Now()); has {
		q.own[req] = priority
		q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(turnPriority)}, req)
	}
}

// Get implements workqueue.TypedInterface.
func (q *fairQueue) Get() (ctrl.Request, bool) {
	req, _, shutdown := q.GetWithPriority()
	return req, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *fairQueue) Done(req ctrl.Request) {
	had := q.endAssignment(req)
	q.PriorityQueue.Done(req)
	if had {
		q.workers.leave()
	}
	q.assignParked()
}

// forgetSpeed forgets that a resource was quick, because a client has changed what its evaluation
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
// request that may not. The caller holds the lock, also while it notes that the library has handed it out: assignParked
// has to find it either in the library or with its worker.
func (q *fairQueue) admit(req ctrl.Request, priority int) bool {
	if q.assigned[req] != nil {
		return true // assignParked has given it one
	}
	was, waits := q.priorities[req]
	may := q.allows(q.workerUse(), req)
	if waits && (may || priority > was) {
		q.unpark(slices.IndexFunc(q.parked, func(p parked) bool { return p.request == req }))
		waits = false
	}
	switch {
	case may:
		q.assigned[req] = &assignment{speed: q.speedOf(req)}
	case !waits:
		q.park(req, priority)
		if _, has := q.own[req]; !has {
			q.own[req] = priority
		}
	}
	return may
}

// waiting returns how many requests wait beside the queue.
func (q *fairQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.parked)
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
	// free is how many of these workers are free.
	free int
	// slow and suspect say whether a slow resource has one, and one of a suspect namespace.
	slow, suspect bool
	// long are how many reconciles run of namespaces that had long ones lately, and of is how many run of each namespace.
	long int
	of   map[tenant]int
}

// workerUse returns the present use of workers.
func (q *fairQueue) workerUse() workerUse {
	out := workerUse{free: q.unprovenWorkers, of: map[tenant]int{}}
	for req, a := range q.assigned {
		suspect, long := q.suspect(req.Namespace), q.long.has(tenantOf(req))
		out.of[tenantOf(req)]++
		if long {
			out.long++
		}
		if a.speed == quick && !suspect && !long {
			continue
		}
		if !a.long {
			out.free--
		}
		out.slow = out.slow || a.speed == slow
		out.suspect = out.suspect || suspect
	}
	return out
}

// allows reports whether a resource may have a worker. A quick resource can become too much without a
// change of itself, because other clients have changed its objects; so none of a suspect namespace counts, nor
// of one that had long reconciles lately.
func (q *fairQueue) allows(u workerUse, req ctrl.Request) bool {
	is, suspect, long := q.speedOf(req), q.suspect(req.Namespace), q.long.has(tenantOf(req))
	switch {
	case is == quick && !suspect && !long:
		return true
	case long && !q.allowsLong(u, tenantOf(req)), !long && !q.allowsOneMore(u, tenantOf(req)):
		return false
	}
	return u.free > 0 && (is != slow || !u.slow) && (!suspect || !u.suspect)
}

// assignParked gives the free workers to parked requests.
func (q *fairQueue) assignParked() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.workerUse()
	for i := 0; i < len(q.parked) && now.free > 0; {
		p := q.parked[i]
		if !q.allows(now, p.request) {
			i++
			continue
		}
		q.unpark(i)
		q.assigned[p.request] = &assignment{speed: q.speedOf(p.request)}
		if q.turns.assign(p.request) {
			q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(turnPriority)}, p.request) // no other request has this worker meanwhile
		}
		now = q.workerUse()
	}
}

// finish notes how quick a reconcile was.
func (q *fairQueue) finish(req ctrl.Request, evaluating time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.assigned[req]
	switch {
	case a == nil: // the process is about to end
	case evaluating > slowEvaluation:
		q.speeds.Add(req, slow)
	case a.changed:
		q.speeds.Remove(req)
	default:
		q.speeds.Add(req, quick)
	}
}
