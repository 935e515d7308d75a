package controller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/engine/history"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// noting returns a handler that notes why the requests of another one are enqueued. An event that enqueues nothing costs
// next to nothing, and nothing is compared before the reconcile.
func noting(of *history.KindLog, cause history.Cause, inner handler.EventHandler) handler.EventHandler {
	return wrapped(inner, func(e handledEvent, q requestQueue, enqueue func(requestQueue)) {
		enqueue(addingBy(q, func(to priorityQueue, o priorityqueue.AddOpts, requests ...ctrl.Request) {
			for _, req := range requests {
				of.Note(req.NamespacedName, e.noted(cause))
			}
			to.AddWithOpts(o, requests...)
		}))
	})
}

// noted returns the event as it is noted. What differs is only looked for where another client has written.
func (e handledEvent) noted(cause history.Cause) history.Event {
	switch {
	case e.initial:
		cause = history.Start
	case e.before != nil && resynced(event.UpdateEvent{ObjectOld: e.before, ObjectNew: e.after}):
		cause = history.Resync
	}
	kind := e.after.GetObjectKind().GroupVersionKind()
	out := history.Event{Trigger: history.Trigger{
		Cause: cause, APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: e.after.GetNamespace(), Name: e.after.GetName(),
	}}
	if cause == history.Start || cause == history.Resync {
		return out
	}
	out.Action = e.action
	if e.action != history.Deleted {
		out.Before, _ = e.before.(*unstructured.Unstructured)
		out.After, _ = e.after.(*unstructured.Unstructured)
	}
	return out
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
