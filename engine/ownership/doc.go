// Package ownership decides what to do about one object: given what a
// package wants, what is there and whom it belongs to, it returns an action. It
// writes nothing.
//
//	Stamp      the package's manifest with the engine's marks: what is applied
//	Decide     stamped manifest + live object + owner -> Action
//	Inventory  what a custom resource has written, grouped by component
//
// Where to look:
//
//	drift.go           a field that somebody else changed or removed
//	adoption.go        an object that somebody else owns, and who may take it over
//	field_conflict.go  another manager that keeps changing a field
//	finished.go        Jobs and Pods that have ended
//	rebuild.go         an inventory that is lost
//
// # When is an object in sync?
//
// The engine never compares values with what the API server made of them:
// defaults, quantities and webhooks change them. It asks two questions instead:
// is the manifest that was last applied the same (its digest is an annotation on
// the object), and does the engine still own each field of it (managedFields)?
// Another client that changes or removes a field takes its ownership away, so
// drift shows without a request, and one apply repairs it.
package ownership
