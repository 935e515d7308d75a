package memory

import (
	"context"
	"fmt"
	"slices"

	"operetta.dev/engine/cluster"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Delete implements Cluster. It deletes in the foreground: an object with dependents exists until the
// garbage collector has deleted them.
func (m *Cluster) Delete(_ context.Context, ref cluster.Ref, uid types.UID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.objects[ref.Identity()]
	if live == nil || live.GetUID() != uid {
		return nil
	}
	next := live.DeepCopy()
	// Without dependents, the garbage collector would remove the finalizer at once.
	if !slices.Contains(live.GetFinalizers(), cluster.TeardownFinalizer) && len(m.dependents(uid)) > 0 {
		next.SetFinalizers(append(next.GetFinalizers(), metav1.FinalizerDeleteDependents))
	}
	return m.remove(live, next)
}

// DeleteInBackground deletes the object with that UID in the background, as a person does: its dependents follow
// when CollectGarbage is called.
func (m *Cluster) DeleteInBackground(ref cluster.Ref, uid types.UID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.objects[ref.Identity()]
	if live == nil || live.GetUID() != uid {
		return nil
	}
	return m.remove(live, live.DeepCopy())
}

// remove deletes an object. If next has finalizers, the object only gets a deletion timestamp.
func (m *Cluster) remove(live, next *unstructured.Unstructured) error {
	if live.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := m.admit(live, nil); err != nil {
		return fmt.Errorf("%s: deleting: %w", cluster.RefOf(live), err)
	}
	if len(next.GetFinalizers()) == 0 {
		m.keep(cluster.Deleted, live, next)
		return nil
	}
	now := timeOf(m.version)
	next.SetDeletionTimestamp(&now)
	countUp(next)
	m.keep(cluster.Updated, live, next)
	return nil
}
