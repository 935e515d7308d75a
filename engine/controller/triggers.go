package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/history"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// noting returns a handler that notes why the requests of another one are enqueued. An event that enqueues nothing costs
// next to nothing, and nothing is compared before the reconcile.
func noting(of *history.KindLog, cause history.Cause, inner handler.EventHandler) handler.EventHandler {
	because := func(q requestQueue, e notedEvent) requestQueue {
		if priorities, ok := q.(priorityqueue.PriorityQueue[ctrl.Request]); ok { // the library's queues are
			return &notingQueue{priorities, of, e}
		}
		return q
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) {
			noted := notedEvent{cause, history.Created, nil, e.Object}
			if e.IsInInitialList {
				noted.cause = history.Start
			}
			inner.Create(ctx, e, because(q, noted))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) {
			noted := notedEvent{cause, history.Changed, e.ObjectOld, e.ObjectNew}
			if resynced(e) {
				noted.cause = history.Resync
			}
			inner.Update(ctx, e, because(q, noted))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) {
			inner.Delete(ctx, e, because(q, notedEvent{cause, history.Deleted, nil, e.Object}))
		},
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q requestQueue) {
			inner.Generic(ctx, e, because(q, notedEvent{cause, history.Changed, nil, e.Object}))
		},
	}
}

// A notedEvent is an event of a watch.
type notedEvent struct {
	cause         history.Cause
	action        history.Action
	before, after client.Object
}

// event returns the event as it is noted. What differs is only looked for where another client has written.
func (e notedEvent) event() history.Event {
	kind := e.after.GetObjectKind().GroupVersionKind()
	out := history.Event{Trigger: history.Trigger{
		Cause: e.cause, APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: e.after.GetNamespace(), Name: e.after.GetName(),
	}}
	if e.cause == history.Start || e.cause == history.Resync {
		return out
	}
	out.Action = e.action
	if e.action != history.Deleted {
		out.Before, _ = e.before.(*unstructured.Unstructured)
		out.After, _ = e.after.(*unstructured.Unstructured)
	}
	return out
}

// A notingQueue is a queue as the handler of one event sees it.
type notingQueue struct {
	priorityqueue.PriorityQueue[ctrl.Request]

	of    *history.KindLog
	event notedEvent
}

// Add implements workqueue.TypedInterface.
func (q *notingQueue) Add(req ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *notingQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	for _, req := range requests {
		q.of.Note(req.NamespacedName, q.event.event())
	}
	q.PriorityQueue.AddWithOpts(o, requests...)
}

// inputEvent returns a change of an input as it is noted, or that one can be read.
func inputEvent(e watch.InputEvent) history.Event {
	if e == (watch.InputEvent{}) {
		return history.Event{Trigger: history.Trigger{Cause: history.Readable}}
	}
	return history.Event{
		Trigger: history.Trigger{
			Cause: history.Input, Action: e.Action, APIVersion: e.Of.GroupVersion().String(), Kind: e.Of.Kind, Namespace: e.Of.Namespace, Name: e.Of.Name,
		},
		Before: e.Before, After: e.After,
	}
}
