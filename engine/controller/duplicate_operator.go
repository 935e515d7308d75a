package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/template"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// duplicateOperator notices that another process writes the statuses of the resources of a kind: it
// reconciles them as well, and the two share no Lease. It counts a status as the other process's if the
// engine has written it and this process has not. That costs no request.
type duplicateOperator struct {
	now func() time.Time
	// report is called once, with the first resource that shows it.
	report func(*unstructured.Unstructured)

	mu       sync.Mutex
	began    time.Time
	reported bool
	writes   map[types.NamespacedName]*statusWrites
}

// statusWrites are this process's writes of one status.
type statusWrites struct {
	// running is the number of writes without an answer.
	running int
	// answers are digests of the last statuses that the API server has answered. The resource version
	// would not do: after a gap in a watch, an event has a version with a later change of the spec.
	answers []template.Key
	// early are the changes that were seen during a write, before its answer.
	early []*unstructured.Unstructured
}

// answersKept is the number of answers that are kept of one resource. An event is at most a few
// writes late.
const answersKept = 8

func newDuplicateOperator(report func(*unstructured.Unstructured)) *duplicateOperator {
	return &duplicateOperator{now: time.Now, report: report, writes: map[types.NamespacedName]*statusWrites{}}
}

// predicate returns a predicate that observes all events and lets them through.
func (d *duplicateOperator) predicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { d.begin(); return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isBefore := e.ObjectOld.(*unstructured.Unstructured)
			after, isAfter := e.ObjectNew.(*unstructured.Unstructured)
			if isBefore && isAfter && d.unreported() && statusRewritten(before, after) {
				d.observe(after)
			}
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			d.forget(client.ObjectKeyFromObject(e.Object))
			return true
		},
	}
}

// statusRewritten reports whether an engine has written the status of a resource as only an operator
// that reconciles it does. The times of managed fields are in seconds, so two writes within a second look
// alike: the write was the engine's if no other client has written.
func statusRewritten(before, after *unstructured.Unstructured) bool {
	if after.GetDeletionTimestamp() != nil || reconcile.SaysNotServed(before) || reconcile.SaysNotServed(after) ||
		object.Equal(before.Object["status"], after.Object["status"]) {
		return false
	}
	was, others := statusTime(before)
	is, now := statusTime(after)
	return was != nil && is != nil && !is.Before(was) && equality.Semantic.DeepEqual(others, now)
}

// statusTime returns when an engine has last changed the status of a resource, or nil, and
// what others have written of the resource.
func statusTime(u *unstructured.Unstructured) (*metav1.Time, []metav1.ManagedFieldsEntry) {
	var at *metav1.Time
	others := slices.DeleteFunc(ownership.ManagedFields(u), func(m metav1.ManagedFieldsEntry) bool {
		own := m.Manager == cluster.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "status"
		if own {
			at = m.Time
		}
		return own
	})
	return at, others
}

// statusDigest returns a digest of the status of a resource.
func statusDigest(u *unstructured.Unstructured) template.Key {
	return template.Shape(u.Object["status"], template.Everything)
}

func (d *duplicateOperator) unreported() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.reported
}

// begin notes the time of the first event.
func (d *duplicateOperator) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began.IsZero() {
		d.began = d.now()
	}
}

func (d *duplicateOperator) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.writes[key]; w != nil && w.running == 0 {
		delete(d.writes, key)
	}
}

// observe reports a resource if this process has not written its status. During a write it waits for the
// answer: an event may be faster.
func (d *duplicateOperator) observe(u *unstructured.Unstructured) {
	d.mu.Lock()
	w := d.writes[client.ObjectKeyFromObject(u)]
	own := w != nil && slices.Contains(w.answers, statusDigest(u))
	switch {
	case d.reported, d.began.IsZero(), d.now().Sub(d.began) < predecessorTime, own:
		d.mu.Unlock()
		return
	case w != nil && w.running > 0:
		w.early = append(w.early, u)
		d.mu.Unlock()
		return
	}
	d.reported = true
	d.writes = nil // nothing is reported again
	d.mu.Unlock()
	d.report(u)
}

// writing notes that a status is being written.
func (d *duplicateOperator) writing(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reported {
		return
	}
	if d.writes[key] == nil {
		d.writes[key] = &statusWrites{}
	}
	d.writes[key].running++
}

// written notes the answer of a write, nil for an error, and observes the changes that were seen before
// it.
func (d *duplicateOperator) written(key types.NamespacedName, answer *unstructured.Unstructured) {
	d.mu.Lock()
	w := d.writes[key]
	if w == nil {
		d.mu.Unlock()
		return
	}
	w.running--
	if answer != nil {
		w.answers = append(w.answers, statusDigest(answer))
		w.answers = w.answers[max(0, len(w.answers)-answersKept):]
	}
	var early []*unstructured.Unstructured
	if w.running == 0 {
		early, w.early = w.early, nil
	}
	d.mu.Unlock()
	for _, u := range early {
		d.observe(u)
	}
}

// observedStatus is a cluster that tells a duplicateOperator about status writes.
type observedStatus struct {
	cluster.Cluster

	duplicate *duplicateOperator
}

// ApplyStatus implements cluster.Cluster.
func (s observedStatus) ApplyStatus(ctx context.Context, resource *unstructured.Unstructured) error {
	key := client.ObjectKeyFromObject(resource)
	s.duplicate.writing(key)
	err := s.Cluster.ApplyStatus(ctx, resource) // it makes of the resource what was answered
	if err != nil {
		s.duplicate.written(key, nil)
		return err
	}
	s.duplicate.written(key, resource)
	return nil
}
