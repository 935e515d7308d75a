package controller

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/verify"
)

// remembersEnded is how many objects that have ended are remembered, the last ones.
// They are shared with the cache as long as they exist.
const remembersEnded = 1000

// endings remembers objects that have ended, also when they are gone: a Job may remove
// itself before a reconcile has seen that it is complete. Objects pass it on their way
// into a cache, so that no reconcile can miss one there that is not known here.
type endings struct{ last *lru.Cache }

func newEndings() *endings { return &endings{lru.New(remembersEnded)} }

// note is the transformation of a cache, and changes nothing. It does not remember what was
// stripped: a thousand of those could be of any size.
func (e *endings) note(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // a deletion that the watch has missed
	}
	ref := cluster.RefOf(u).Identity()
	if isStripped(u) || verify.Ended(u) == verify.Progressing {
		e.last.Remove(ref) // another one of its name
	} else {
		e.last.Add(ref, u)
	}
	return object, nil
}

// of returns the last state of an object that has ended, or nil.
func (e *endings) of(ref cluster.Ref) *unstructured.Unstructured {
	found, _ := e.last.Get(ref.Identity())
	u, _ := found.(*unstructured.Unstructured)
	return u
}
