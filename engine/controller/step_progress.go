package controller

import (
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
)

// written is what one reconcile of a resource has written. A write that the API server
// refused is none: another step would only have it refused again.
type written struct {
	// contents are the digests that were applied to each object.
	contents map[cluster.Ref]map[string]bool
	// last is what was written since this was last asked about.
	last progress
}

// progress is what a step has brought.
type progress string

const (
	// noWrite: the step has written no object.
	noWrite progress = "NoWrite"
	// rewritten: it has written only what this reconcile had written before, or an
	// object whose content changes each time that it is looked at.
	rewritten progress = "Rewritten"
	// advanced: it has written something new, which may unblock another component.
	advanced progress = "Advanced"
)

// maxContents is how many contents of one object a reconcile writes: a package may feed
// what it reads of an object back into it, and would hold a worker for ever.
const maxContents = 3

// beginReconcile forgets what an earlier reconcile of a resource has written.
func (e *ownWriteFilter) beginReconcile(owner types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reconciles == nil {
		e.reconciles = map[types.NamespacedName]*written{}
	}
	e.reconciles[owner] = &written{contents: map[cluster.Ref]map[string]bool{}, last: noWrite}
}

// endReconcile forgets what a reconcile has written.
func (e *ownWriteFilter) endReconcile(owner types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.reconciles, owner)
}

// wrote notes that the API server has accepted a content of an object.
func (e *ownWriteFilter) wrote(key ownWriteKey, digest string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.reconciles[key.owner]
	if w == nil {
		return // somebody else than a reconcile writes, such as a teardown without a package
	}
	contents := w.contents[key.object]
	if contents == nil {
		contents = map[string]bool{}
		w.contents[key.object] = contents
	}
	isNew := !contents[digest]
	contents[digest] = true
	if isNew && len(contents) < maxContents {
		w.last = advanced
	} else if w.last == noWrite {
		w.last = rewritten
	}
}

// sinceLast returns what a reconcile has brought since this was last asked.
func (e *ownWriteFilter) sinceLast(owner types.NamespacedName) progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.reconciles[owner]
	if w == nil {
		return noWrite
	}
	last := w.last
	w.last = noWrite
	return last
}
