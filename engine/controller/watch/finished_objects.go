package watch

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/verify"
)

// finishedObjectsSize limits the size of all finished objects that are remembered. As long as they
// exist, they share their memory with the cache.
const finishedObjectsSize = 16 << 20

// finishedObjects remembers objects that have run to their end, even after they are gone: a Job may
// remove itself before a reconcile has seen that it is complete. Objects pass it on their way
// into a cache, so that no reconcile misses an object there that is not known here.
type finishedObjects struct{ last *recent }

func newFinishedObjects() *finishedObjects { return &finishedObjects{newRecent(finishedObjectsSize)} }

// note is a cache transform that changes nothing. It does not remember stripped objects, as nothing is
// left of their status.
func (f *finishedObjects) note(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // a deletion that the watch has missed
	}
	ref := cluster.RefOf(u).Identity()
	if isStripped(u) || verify.Completion(u) == verify.Progressing {
		f.last.remove(ref) // another one of its name
	} else {
		f.last.add(ref, u)
	}
	return object, nil
}

// get returns the last state of an object that has finished, or nil.
func (f *finishedObjects) get(ref cluster.Ref) *unstructured.Unstructured {
	return f.last.get(ref.Identity())
}
