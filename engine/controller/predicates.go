package controller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// specOrMetadataChanged lets through the changes of a custom resource that a rollout may
// depend on, and the resync, in which nothing has changed.
var specOrMetadataChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, isBefore := e.ObjectOld.(*unstructured.Unstructured)
		after, isAfter := e.ObjectNew.(*unstructured.Unstructured)
		return resynced(e) || !isBefore || !isAfter || reconcile.SpecOrMetadataChanged(before, after)
	},
}

// patchSpecChanged leaves out the changes of a Patch's status, which are the engine's own.
var patchSpecChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	},
}

// resyncOnly lets only the resync through.
var resyncOnly = onUpdate(resynced)

// questionAnswered lets through the update that removes PackageBroken from a status: another operator
// has answered the question whether it serves the resource.
var questionAnswered = onUpdate(func(e event.UpdateEvent) bool {
	before, isBefore := e.ObjectOld.(*unstructured.Unstructured)
	after, isAfter := e.ObjectNew.(*unstructured.Unstructured)
	return isBefore && isAfter && reconcile.SaysNotServed(before) && !reconcile.SaysNotServed(after)
})

// onUpdate returns a predicate that lets some updates through, and nothing else.
func onUpdate(which func(event.UpdateEvent) bool) predicate.Funcs {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  which,
	}
}

// resynced reports whether an update is of the resync: an informer repeats what it has.
func resynced(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
}
