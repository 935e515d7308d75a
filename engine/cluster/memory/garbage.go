package memory

import (
	"maps"
	"slices"

	"operetta.dev/engine/cluster"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ownerIndex indexes objects by their owners, so that the garbage collector need not visit every
// object each time.
type ownerIndex struct {
	// there are the UIDs of the objects that exist.
	there map[types.UID]bool
	// of are the objects with an owner reference to a UID.
	of map[types.UID]map[cluster.Ref]bool
	// waiting are the objects that are being deleted in the foreground.
	waiting map[cluster.Ref]bool
}

func newOwnerIndex() ownerIndex {
	return ownerIndex{there: map[types.UID]bool{}, of: map[types.UID]map[cluster.Ref]bool{}, waiting: map[cluster.Ref]bool{}}
}

// note updates the index after a change of an object; after is nil if the object was deleted.
func (b ownerIndex) note(ref cluster.Ref, before, after *unstructured.Unstructured) {
	if before != nil {
		delete(b.there, before.GetUID())
		for _, o := range before.GetOwnerReferences() {
			if delete(b.of[o.UID], ref); len(b.of[o.UID]) == 0 {
				delete(b.of, o.UID)
			}
		}
	}
	delete(b.waiting, ref)
	if after == nil {
		return
	}
	b.there[after.GetUID()] = true
	for _, o := range after.GetOwnerReferences() {
		if b.of[o.UID] == nil {
			b.of[o.UID] = map[cluster.Ref]bool{}
		}
		b.of[o.UID][ref] = true
	}
	if isDeletedInForeground(after) {
		b.waiting[ref] = true
	}
}

// AssumeExists makes the garbage collector take an object with a UID as one that exists, although this cluster does
// not have it.
func (m *Cluster) AssumeExists(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owners.there[uid] = true
}

// isDeletedInForeground reports whether an object is being deleted in the foreground.
func isDeletedInForeground(u *unstructured.Unstructured) bool {
	return u.GetDeletionTimestamp() != nil && slices.Contains(u.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// collectable returns the objects that the garbage collector may have to act on.
func (b ownerIndex) collectable() []cluster.Ref {
	out := maps.Clone(b.waiting)
	for owner, refs := range b.of {
		if !b.there[owner] {
			maps.Copy(out, refs)
		}
	}
	return sortedRefs(out)
}

// CollectGarbage does the work of the garbage collector of Kubernetes: it deletes the dependents of
// objects that do not exist any more, and of objects that are being deleted in the foreground.
func (m *Cluster) CollectGarbage() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for before := int64(-1); before != m.version; {
		before = m.version
		for _, ref := range m.owners.collectable() {
			if u := m.objects[ref]; u != nil {
				m.collect(u)
			}
		}
	}
}

// collect acts on one object. It ignores rejected deletions.
func (m *Cluster) collect(u *unstructured.Unstructured) {
	if !isDeletedInForeground(u) {
		owned := func(o metav1.OwnerReference) bool { return m.owners.there[o.UID] }
		if len(u.GetOwnerReferences()) > 0 && !slices.ContainsFunc(u.GetOwnerReferences(), owned) {
			_ = m.remove(u, u.DeepCopy())
		}
		return
	}
	dependents := m.dependents(u.GetUID())
	for _, d := range dependents {
		_ = m.remove(d, d.DeepCopy())
	}
	if len(dependents) > 0 {
		return
	}
	next := u.DeepCopy()
	next.SetFinalizers(slices.DeleteFunc(next.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerDeleteDependents }))
	m.store(u, next)
}

// dependents returns the objects that block the deletion of their owner in the foreground.
func (m *Cluster) dependents(owner types.UID) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, ref := range sortedRefs(m.owners.of[owner]) {
		u := m.objects[ref]
		if slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
			return o.UID == owner && o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
		}) {
			out = append(out, u)
		}
	}
	return out
}
