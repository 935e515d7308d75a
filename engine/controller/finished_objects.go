package controller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/verify"
)

// finishedObjectsSize is how much of objects that have ended is remembered, the last ones.
// They are shared with the cache as long as they exist.
const finishedObjectsSize = 16 << 20

// finishedObjects remembers objects that have ended, also when they are gone: a Job may remove
// itself before a reconcile has seen that it is complete. Objects pass it on their way
// into a cache, so that no reconcile can miss one there that is not known here.
type finishedObjects struct{ last *recent }

func newFinishedObjects() *finishedObjects { return &finishedObjects{newRecent(finishedObjectsSize)} }

// note is the transformation of a cache, and changes nothing. It does not remember what was
// stripped, of which nothing is left to tell.
func (e *finishedObjects) note(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // a deletion that the watch has missed
	}
	ref := cluster.RefOf(u).Identity()
	if isStripped(u) || verify.Completion(u) == verify.Progressing {
		e.last.remove(ref) // another one of its name
	} else {
		e.last.add(ref, u)
	}
	return object, nil
}

// of returns the last state of an object that has ended, or nil.
func (e *finishedObjects) of(ref cluster.Ref) *unstructured.Unstructured {
	return e.last.get(ref.Identity())
}
