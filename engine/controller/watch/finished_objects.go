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

// note returns an object as the cache keeps it, packed. It does not remember stripped objects, as nothing
// is left of their status.
func (f *finishedObjects) note(u *unstructured.Unstructured) *unstructured.Unstructured {
	ref := cluster.RefOf(u).Identity()
	finished := !isStripped(u) && verify.Completion(u) != verify.Progressing
	kept := packed(u)
	if finished {
		f.last.add(ref, kept)
	} else {
		f.last.remove(ref) // another one of its name
	}
	return kept
}

// get returns the last state of an object that has finished, or nil.
func (f *finishedObjects) get(ref cluster.Ref) *unstructured.Unstructured {
	kept := f.last.get(ref.Identity())
	if kept == nil {
		return nil
	}
	u, err := unpacked(kept)
	if err != nil {
		return nil // as if it was not remembered
	}
	return u
}
