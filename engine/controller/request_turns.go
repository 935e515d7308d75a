package controller

import (
	"cmp"
	"container/heap"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// The priorities of requests, besides handler.LowPriority, which is that of resources that no client has
// changed: a package has a new version, the process has started, or an informer repeats what it has.
// Events of objects and timers have priority 0.
const (
	// changePriority is for a change of a custom resource or of a Patch, as a person waits for it.
	changePriority = 100
	// turnPriority is for a request whose turn it is, and for one that has a worker already.
	turnPriority = 200
)

// turnEvery says how often a request that is not urgent has its turn: one of so many requests that a
// queue hands out. The queue of the library hands out the most urgent one, so without turns a user who changes
// resources all the time would stop everything else.
const turnEvery = 4

// requestTurns has the requests of a queue that are not urgent, by when they are due.
type requestTurns struct {
	waiting map[ctrl.Request]*waitingRequest
	byDue   requestHeap
	// given are the requests that have got their turn and were not handed out since, and late says whether the
	// turn was too late: the library was handing out the request at that moment, and now has it once more.
	given map[ctrl.Request]lateness
	// entered and handedOut count requests.
	entered, handedOut uint64
}

// lateness says whether a turn came too late.
type lateness bool

const (
	inTime lateness = false
	late   lateness = true
)

// A waitingRequest is a request in a queue.
type waitingRequest struct {
	request  ctrl.Request
	due      time.Time
	priority int
	// number is its place among the requests that are due at the same time, and index its place in the heap.
	number uint64
	index  int
}

func newRequestTurns() requestTurns {
	return requestTurns{waiting: map[ctrl.Request]*waitingRequest{}, given: map[ctrl.Request]lateness{}}
}

// enter notes that a request is added to the queue. One that is there already is due at the earlier time.
func (t *requestTurns) enter(req ctrl.Request, priority int, due time.Time) {
	delete(t.given, req) // whatever is handed out from now on stands for this one as well
	w := t.waiting[req]
	switch {
	case priority >= changePriority:
		t.leave(req)
	case w == nil:
		t.entered++
		w = &waitingRequest{request: req, due: due, number: t.entered, priority: priority}
		t.waiting[req] = w
		heap.Push(&t.byDue, w)
	default:
		w.priority = max(w.priority, priority)
		if due.Before(w.due) {
			w.due = due
			heap.Fix(&t.byDue, w.index)
		}
	}
}

// handOut notes that the library has handed out a request. It reports false for one that is there only for a
// turn that came too late.
func (t *requestTurns) handOut(req ctrl.Request, priority int) bool {
	turn, given := t.given[req]
	if given && priority < turnPriority {
		t.given[req] = late
		t.leave(req) // one that was parked has kept its place
		return true
	}
	delete(t.given, req)
	if turn == late {
		return false
	}
	t.leave(req)
	return true
}

// assign notes that a request gets a worker, for which it is handed out as for a turn. It reports whether it has to be added to
// the library for that: it may be there for its turn already. If the library hands it out for something else at this moment, the
// worker is for that, and the turn comes too late.
func (t *requestTurns) assign(req ctrl.Request) bool {
	_, given := t.given[req]
	t.given[req] = inTime
	return !given
}

// leave notes that a request has left the queue, or is urgent.
func (t *requestTurns) leave(req ctrl.Request) {
	if w := t.waiting[req]; w != nil {
		delete(t.waiting, req)
		heap.Remove(&t.byDue, w.index)
	}
}

// give gives the turn to the request that has been due for longest, and returns it with the priority that it had. It
// reports false if it is the turn of none.
func (t *requestTurns) give(now time.Time) (req ctrl.Request, priority int, has bool) {
	t.handedOut++
	if t.handedOut%turnEvery != 0 || len(t.byDue) == 0 || t.byDue[0].due.After(now) {
		return ctrl.Request{}, 0, false
	}
	req, priority = t.byDue[0].request, t.byDue[0].priority
	t.leave(req)
	t.given[req] = inTime
	return req, priority, true
}

// A requestHeap has the request on top that is due first.
type requestHeap []*waitingRequest

var _ heap.Interface = (*requestHeap)(nil)

// Len implements heap.Interface.
func (h requestHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h requestHeap) Less(i, j int) bool {
	return cmp.Or(h[i].due.Compare(h[j].due), cmp.Compare(h[i].number, h[j].number)) < 0
}

// Swap implements heap.Interface.
func (h requestHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *requestHeap) Push(x any) {
	w, _ := x.(*waitingRequest)
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop implements heap.Interface.
func (h *requestHeap) Pop() any {
	last := len(*h) - 1
	out := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return out
}

// urgently returns a handler that enqueues what another one does before the events of objects, unless
// no client has changed anything.
func urgently(inner handler.EventHandler) handler.EventHandler {
	return wrapped(inner, func(_ handledEvent, q requestQueue, enqueue func(requestQueue)) {
		enqueue(addingBy(q, func(to priorityQueue, o priorityqueue.AddOpts, requests ...ctrl.Request) {
			if o.Priority == nil {
				o.Priority = new(changePriority)
			}
			to.AddWithOpts(o, requests...)
		}))
	})
}

// batched returns a handler that enqueues what another one does for an update a moment later. One change makes
// many updates of the objects of a resource, and all within that moment cause one reconcile. What is created or
// deleted does not wait, as a rollout or teardown may go on with it.
func batched(inner handler.EventHandler) handler.EventHandler {
	return wrapped(inner, func(e handledEvent, q requestQueue, enqueue func(requestQueue)) {
		if e.before != nil {
			q = addingBy(q, func(to priorityQueue, o priorityqueue.AddOpts, requests ...ctrl.Request) {
				o.After = max(o.After, updateDelay)
				to.AddWithOpts(o, requests...)
			})
		}
		enqueue(q)
	})
}
