package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Memory is a Cluster without a server: apply with field ownership, generations,
// deletion with finalizers and preconditions, and changes in their order. It is
// what dry runs and tests roll packages out in.
//
// It has no controllers, no admission and no garbage collection: a Deployment in
// it has no status until somebody writes one with Put. It serves Kubernetes' own
// kinds, and others that Serve declares.
type Memory struct {
	mu      sync.Mutex
	objects map[Ref]*unstructured.Unstructured
	served  map[schema.GroupKind]Scope
	changes []Change
	version int64
	fields  *fieldManagers
	refuse  Refusal
}

// A Refusal refuses writes as admission does: it is given what is there and what
// is to be, either of which may be nil.
type Refusal func(before, after *unstructured.Unstructured) error

// Refuse makes the cluster refuse writes.
func (m *Memory) Refuse(r Refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = r
}

// admit asks the refusal.
func (m *Memory) admit(before, after *unstructured.Unstructured) error {
	if m.refuse == nil {
		return nil
	}
	return m.refuse(before, after)
}

var _ Cluster = (*Memory)(nil)

// A Change is something that was written to a Memory.
type Change struct {
	// Verb is create, update or delete.
	Verb string
	Ref  Ref
}

// String returns the change on one line.
func (c Change) String() string { return c.Verb + " " + c.Ref.String() }

// NewMemory returns an empty cluster.
func NewMemory() *Memory {
	return &Memory{
		objects: map[Ref]*unstructured.Unstructured{},
		served:  map[schema.GroupKind]Scope{},
		fields:  newFieldManagers(),
	}
}

// Serve makes the cluster know a kind, as a CustomResourceDefinition does.
func (m *Memory) Serve(kind schema.GroupKind, scope Scope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served[kind] = scope
}

// Changes returns everything that was written so far, in order.
func (m *Memory) Changes() []Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.changes)
}

// Refs returns the identities of all objects, sorted.
func (m *Memory) Refs() []Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Keys(m.objects), func(a, b Ref) int {
		return strings.Compare(a.Group+"/"+a.String(), b.Group+"/"+b.String())
	})
}

// Objects returns all objects, sorted as their identities are.
func (m *Memory) Objects() []*unstructured.Unstructured {
	refs := m.Refs()
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, ref := range refs {
		if u := m.objects[ref]; u != nil {
			out = append(out, u.DeepCopy())
		}
	}
	return out
}

// Scope implements Cluster.
func (m *Memory) Scope(_ context.Context, kind schema.GroupVersionKind) (Scope, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if scope, ok := m.served[kind.GroupKind()]; ok {
		return scope, nil
	}
	if scope, ok := m.fields.builtin(kind); ok {
		return scope, nil
	}
	return "", &KindNotServedError{Kind: kind}
}

// Get implements Cluster.
func (m *Memory) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	return m.Read(ctx, ref)
}

// Read implements Cluster.
func (m *Memory) Read(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if _, err := m.Scope(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.objects[ref.Identity()]; u != nil {
		return u.DeepCopy(), nil
	}
	return nil, nil
}

// Apply implements Cluster.
func (m *Memory) Apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return m.applyAs(ctx, FieldManager, object)
}

// Relinquish implements Cluster.
func (m *Memory) Relinquish(ctx context.Context, fields *unstructured.Unstructured) error {
	_, err := m.applyAs(ctx, relinquisher, fields)
	return err
}

func (m *Memory) applyAs(ctx context.Context, manager string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ref := RefOf(object)
	if _, err := m.Scope(ctx, ref.GroupVersionKind); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.objects[ref.Identity()]
	if err := precondition(ref, live, object.GetUID()); err != nil {
		return nil, err
	}
	merged, err := m.fields.apply(live, object, manager)
	if err != nil {
		return nil, fmt.Errorf("%s: applying: %w", ref, err)
	}
	if err := m.admit(live, merged); err != nil {
		return nil, fmt.Errorf("%s: applying: %w", ref, err)
	}
	return m.store(ref, live, merged), nil
}

// Replace implements Cluster.
func (m *Memory) Replace(_ context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return m.Put(FieldManager, object)
}

// Probe implements Cluster.
func (m *Memory) Probe(_ context.Context, object *unstructured.Unstructured) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admit(nil, object)
}

// Owned implements Cluster.
func (m *Memory) Owned(_ context.Context, label, value string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, ref := range m.Refs() {
		m.mu.Lock()
		u := m.objects[ref]
		m.mu.Unlock()
		if u != nil && u.GetLabels()[label] == value {
			out = append(out, u.DeepCopy())
		}
	}
	return out, nil
}

// precondition checks the UID that a write names.
func precondition(ref Ref, live *unstructured.Unstructured, uid types.UID) error {
	if uid == "" || (live != nil && live.GetUID() == uid) {
		return nil
	}
	return fmt.Errorf("%s: applying: %w", ref, apierrors.NewConflict(schema.GroupResource{Group: ref.Group, Resource: strings.ToLower(ref.Kind)},
		ref.Name, fmt.Errorf("the UID in the precondition (%s) is not that of an existing object", uid)))
}

// Put writes an object as somebody else, as a whole and with its status: as a
// controller does, or a person with kubectl edit. It returns the result.
func (m *Memory) Put(manager string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := RefOf(object)
	live := m.objects[ref.Identity()]
	merged, err := m.fields.update(live, object, manager)
	if err != nil {
		return nil, fmt.Errorf("%s: updating: %w", ref, err)
	}
	return m.store(ref, live, merged), nil
}

// store keeps a new state of an object, with what the API server sets, and returns
// a copy. A state that says nothing new changes nothing.
func (m *Memory) store(ref Ref, live, next *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		m.create(ref, next)
		return next.DeepCopy()
	}
	next.SetUID(live.GetUID())
	next.SetCreationTimestamp(live.GetCreationTimestamp())
	next.SetDeletionTimestamp(live.GetDeletionTimestamp())
	next.SetGeneration(live.GetGeneration())
	next.SetResourceVersion(live.GetResourceVersion())
	if same(live, next) {
		return live.DeepCopy()
	}
	if !sameSpec(live, next) {
		next.SetGeneration(live.GetGeneration() + 1)
	}
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		delete(m.objects, ref.Identity())
		m.note("delete", ref)
		return next.DeepCopy()
	}
	m.note("update", ref)
	next.SetResourceVersion(strconv.FormatInt(m.version, 10))
	m.objects[ref.Identity()] = next
	return next.DeepCopy()
}

func (m *Memory) create(ref Ref, next *unstructured.Unstructured) {
	m.note("create", ref)
	next.SetUID(types.UID("uid-" + strconv.FormatInt(m.version, 10)))
	next.SetGeneration(1)
	next.SetResourceVersion(strconv.FormatInt(m.version, 10))
	// No clock: the order of creation is time enough, and the same every time.
	next.SetCreationTimestamp(metav1.NewTime(time.Unix(m.version, 0).UTC()))
	m.objects[ref.Identity()] = next
}

func (m *Memory) note(verb string, ref Ref) {
	m.version++
	m.changes = append(m.changes, Change{Verb: verb, Ref: ref})
}

// Delete implements Cluster.
func (m *Memory) Delete(_ context.Context, ref Ref, uid types.UID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := m.objects[ref.Identity()]
	if live == nil || live.GetUID() != uid || live.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := m.admit(live, nil); err != nil {
		return fmt.Errorf("%s: deleting: %w", ref, err)
	}
	if len(live.GetFinalizers()) == 0 {
		delete(m.objects, ref.Identity())
		m.note("delete", ref)
		return nil
	}
	next := live.DeepCopy()
	m.note("update", ref)
	now := metav1.NewTime(time.Unix(m.version, 0).UTC())
	next.SetDeletionTimestamp(&now)
	next.SetResourceVersion(strconv.FormatInt(m.version, 10))
	m.objects[ref.Identity()] = next
	return nil
}

// ApplyStatus replaces the status of an object with that UID; it does nothing when
// there is none.
func (m *Memory) ApplyStatus(object *unstructured.Unstructured) {
	m.amend(object, func(live *unstructured.Unstructured) { live.Object["status"] = object.Object["status"] })
}

// ApplyFinalizers replaces the finalizers below a prefix of an object with that
// UID by those that object has; it does nothing when there is none.
func (m *Memory) ApplyFinalizers(object *unstructured.Unstructured, prefix string) {
	m.amend(object, func(live *unstructured.Unstructured) {
		others := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, prefix) })
		live.SetFinalizers(append(others, object.GetFinalizers()...))
	})
}

// amend changes a part of an object that apply does not reach.
func (m *Memory) amend(object *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := RefOf(object)
	live := m.objects[ref.Identity()]
	if live == nil || live.GetUID() != object.GetUID() {
		return
	}
	next := live.DeepCopy()
	change(next)
	m.store(ref, live, next)
}

// Select returns the objects of a kind and namespace that have some labels, sorted
// by name.
func (m *Memory) Select(kind schema.GroupVersionKind, namespace string, selector map[string]string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, ref := range m.Refs() {
		if ref.GroupKind() != kind.GroupKind() || ref.Namespace != namespace {
			continue
		}
		m.mu.Lock()
		u := m.objects[ref]
		m.mu.Unlock()
		if u != nil && labels.SelectorFromSet(selector).Matches(labels.Set(u.GetLabels())) {
			out = append(out, u.DeepCopy())
		}
	}
	return out
}
