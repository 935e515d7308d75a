package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"operetta.dev/engine/cluster"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Apply implements Cluster.
func (m *Cluster) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return m.applyAs(ctx, cluster.FieldManager, object, m.store)
}

// HandOver implements Cluster.
func (m *Cluster) HandOver(ctx context.Context, fields *unstructured.Unstructured) error {
	_, err := m.applyAs(ctx, cluster.HandOverManager, fields, m.store)
	return err
}

// A keeper stores the result of a write, and returns the response.
type keeper func(live, next *unstructured.Unstructured) *unstructured.Unstructured

func (m *Cluster) applyAs(ctx context.Context, manager string, object *unstructured.Unstructured, keep keeper) (*unstructured.Unstructured, error) {
	ref := cluster.RefOf(object)
	if _, err := m.Scope(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.objects[ref.Identity()]
	if uid := object.GetUID(); uid != "" && (live == nil || live.GetUID() != uid) {
		return nil, fmt.Errorf("%s: applying: %w", ref, cluster.Conflict(ref, "the UID in the precondition (%s) is not that of an existing object", uid))
	}
	if object.GetUID() == "" && live != nil {
		return nil, cluster.AlreadyExists(ref)
	}
	if err := m.checkTypes(withoutServerFields(object)); err != nil {
		return nil, cluster.WrapError(ref, "applying", err)
	}
	merged, err := m.fields.apply(live, object, manager)
	if wrong := m.fields.schemaFault(object); err != nil && wrong != nil {
		return nil, wrong
	}
	if err == nil {
		err = m.admit(live, merged)
	}
	if err != nil {
		return nil, cluster.WrapError(ref, "applying", err)
	}
	return keep(live, merged), nil
}

// Replace implements Cluster.
func (m *Cluster) Replace(_ context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return m.replace(object, m.store)
}

func (m *Cluster) replace(object *unstructured.Unstructured, keep keeper) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := cluster.RefOf(object)
	live := m.objects[ref.Identity()]
	switch {
	case live == nil:
		return nil, fmt.Errorf("%s: replacing: %w", ref, apierrors.NewNotFound(cluster.ResourceOf(ref), ref.Name))
	case live.GetUID() != object.GetUID() || live.GetResourceVersion() != object.GetResourceVersion():
		return nil, fmt.Errorf("%s: replacing: %w", ref, cluster.Conflict(ref, "it has been modified or replaced"))
	}
	next := object.DeepCopy()
	if delete(next.Object, "status"); live.Object["status"] != nil {
		next.Object["status"] = live.Object["status"]
	}
	return m.update(cluster.FieldManager, live, next, keep)
}

// Put updates or creates a whole object with its status under another field manager, as a controller
// or a person with kubectl edit does. It returns the result.
func (m *Cluster) Put(manager string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.update(manager, m.objects[cluster.RefOf(object).Identity()], object, m.store)
}

// Restore creates an object as it was read from a cluster: with its UID, its generation and its managed
// fields, or with fields of the given manager if it has none. If the object exists or has no UID,
// Restore is Put.
func (m *Cluster) Restore(manager string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.objects[cluster.RefOf(object).Identity()]
	if live != nil || object.GetUID() == "" {
		return m.update(manager, live, object, m.store)
	}
	next := object.DeepCopy()
	if len(next.GetManagedFields()) == 0 {
		merged, err := m.fields.update(nil, next, manager)
		if err != nil {
			return nil, cluster.WrapError(cluster.RefOf(object), "updating", err)
		}
		next = merged
	}
	return m.keep(cluster.Created, nil, next), nil
}

func (m *Cluster) update(manager string, live, next *unstructured.Unstructured, keep keeper) (*unstructured.Unstructured, error) {
	merged, err := m.fields.update(live, next, manager)
	if err == nil {
		err = m.admit(live, merged)
	}
	if err != nil {
		return nil, cluster.WrapError(cluster.RefOf(next), "updating", err)
	}
	return keep(live, merged), nil
}

// Probe implements Cluster.
func (m *Cluster) Probe(_ context.Context, object *unstructured.Unstructured) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	probe := withoutServerFields(object)
	err := m.checkTypes(probe)
	if err == nil {
		err = m.admit(nil, probe)
	}
	if err != nil {
		return cluster.WrapError(cluster.RefOf(object), "probing", err)
	}
	return nil
}

// store stores a new state of an object, with the metadata that an API server sets, and returns a copy.
// If nothing differs, there is no new resource version and no event.
func (m *Cluster) store(live, next *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		next.SetUID(types.UID("uid-" + strconv.FormatInt(m.version+1, 10)))
		next.SetGeneration(firstGeneration(next.GroupVersionKind()))
		next.SetCreationTimestamp(timeOf(m.version))
		return m.keep(cluster.Created, nil, next)
	}
	next.SetUID(live.GetUID())
	next.SetCreationTimestamp(live.GetCreationTimestamp())
	next.SetDeletionTimestamp(live.GetDeletionTimestamp())
	next.SetGeneration(live.GetGeneration())
	next.SetResourceVersion(live.GetResourceVersion())
	if same(live, next) {
		return live.DeepCopy()
	}
	if !sameWithout(live, next, "metadata", "status") { // what else differs is another generation
		countUp(next)
	}
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		m.keep(cluster.Deleted, live, live.DeepCopy())
		return next.DeepCopy()
	}
	return m.keep(cluster.Updated, live, next)
}

// countUp increments the generation of an object, if its kind has one.
func countUp(u *unstructured.Unstructured) {
	if g := u.GetGeneration(); g > 0 {
		u.SetGeneration(g + 1)
	}
}

// timeOf returns a time that follows from the number of writes, so that runs are reproducible.
func timeOf(version int64) metav1.Time { return metav1.NewTime(time.Unix(version+1, 0).UTC()) }

// keep stores the result of a change, adds an event, and returns a copy.
func (m *Cluster) keep(op cluster.Operation, before, next *unstructured.Unstructured) *unstructured.Unstructured {
	m.version++
	next.SetResourceVersion(strconv.FormatInt(m.version, 10))
	ref := cluster.RefOf(next)
	if op == cluster.Deleted {
		delete(m.objects, ref.Identity())
		m.owners.note(ref.Identity(), before, nil)
	} else {
		m.objects[ref.Identity()] = next
		m.owners.note(ref.Identity(), before, next)
	}
	m.events = append(m.events, cluster.ObjectChange{Change: cluster.Change{Operation: op, Ref: ref}, Before: before, Object: next})
	return next.DeepCopy()
}

// ApplyStatus implements Cluster.
func (m *Cluster) ApplyStatus(_ context.Context, object *unstructured.Unstructured) error {
	m.amend(object, func(live *unstructured.Unstructured) { live.Object["status"] = object.Object["status"] })
	return nil
}

// finalizerPrefix begins the finalizers of the engine.
const finalizerPrefix = "operetta.dev/"

// ApplyFinalizers implements Cluster.
func (m *Cluster) ApplyFinalizers(_ context.Context, object *unstructured.Unstructured) error {
	m.amend(object, func(live *unstructured.Unstructured) {
		others := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, finalizerPrefix) })
		live.SetFinalizers(append(others, object.GetFinalizers()...))
	})
	return nil
}

// amend changes a subresource or the finalizers of an object, if it has the given UID.
func (m *Cluster) amend(object *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.objects[cluster.RefOf(object).Identity()]
	if live == nil || live.GetUID() != object.GetUID() {
		return
	}
	next := live.DeepCopy()
	change(next)
	m.store(live, next)
}
