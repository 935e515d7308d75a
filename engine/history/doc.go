// Package history remembers in memory why the last reconciles of each custom resource happened, and what they cost:
//
//	of := log.ForKind(kind)
//	of.Note(key, event)             // an event enqueues a resource
//	of.NoteDequeued(key)            // a worker gets it: what was noted so far is why
//	ctx, run := of.Begin(ctx, key, uid)
//	history.CountRequest(ctx, verb, resource)
//	run.End(result, again, uid)
//	report, _ := of.Report(key, uid) // for whoever may see the resource
//
// It is a Log of a process, which a restart empties: nothing is written to a cluster. Users make resources, objects
// and events, so everything is bounded: the reconciles of a resource, what triggered each, the resources, and the
// memory of all together. A resource that is gone has none.
//
// It knows the names of objects, of fields and of field managers, and no value of a field.
package history
