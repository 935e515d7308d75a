package controller

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"operetta.dev/engine/history"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// A requestQueue is the queue of a controller, and a priorityQueue what the library's queues are.
type (
	requestQueue  = workqueue.TypedRateLimitingInterface[ctrl.Request]
	priorityQueue = priorityqueue.PriorityQueue[ctrl.Request]
)

// A handledEvent is an event of a watch. Only an update has an object before it.
type handledEvent struct {
	action        history.Action
	before, after client.Object
	// initial says that the object is one of the first list.
	initial bool
}

// wrapped returns a handler that calls a function for each event, with what calls the inner handler with a queue.
func wrapped(inner handler.EventHandler, handle func(e handledEvent, q requestQueue, enqueue func(requestQueue))) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) {
			handle(handledEvent{history.Created, nil, e.Object, e.IsInInitialList}, q, func(q requestQueue) { inner.Create(ctx, e, q) })
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) {
			handle(handledEvent{history.Changed, e.ObjectOld, e.ObjectNew, false}, q, func(q requestQueue) { inner.Update(ctx, e, q) })
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) {
			handle(handledEvent{history.Deleted, nil, e.Object, false}, q, func(q requestQueue) { inner.Delete(ctx, e, q) })
		},
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q requestQueue) {
			handle(handledEvent{history.Changed, nil, e.Object, false}, q, func(q requestQueue) { inner.Generic(ctx, e, q) })
		},
	}
}

// An addFunc adds requests to a queue.
type addFunc func(to priorityQueue, o priorityqueue.AddOpts, requests ...ctrl.Request)

// addingBy returns a queue as a handler sees it: a function adds the requests.
func addingBy(q requestQueue, add addFunc) requestQueue {
	if priorities, ok := q.(priorityQueue); ok { // the library's queues are
		return handlerQueue{priorities, add}
	}
	return q
}

type handlerQueue struct {
	priorityQueue

	add addFunc
}

// Add implements workqueue.TypedInterface.
func (q handlerQueue) Add(req ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q handlerQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	q.add(q.priorityQueue, o, requests...)
}
