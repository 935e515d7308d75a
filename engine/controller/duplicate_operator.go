package controller

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// duplicateOperator notices that another process writes the statuses of the resources of a kind: it
// serves them as well, and the two share no Lease. A status that the engine has written and
// this process has not is such a process's. It costs no request.
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
	// running are those that are not answered yet.
	running int
	// answers are the last ones.
	answers []statusAnswer
	// early are the changes that were seen while one was running.
	early []*unstructured.Unstructured
}

// A statusAnswer is what the API server made of a write.
type statusAnswer struct {
	version string
	// content is a digest of the status: after a gap in a watch, a version that also has a
	// later change of somebody else is seen instead.
	content uint64
}

// answersKept is how many answers are known of one resource. An event is at most a few
// writes late.
const answersKept = 8

func newDuplicateOperator(tell func(*unstructured.Unstructured)) *duplicateOperator {
	return &duplicateOperator{now: time.Now, report: tell, writes: map[types.NamespacedName]*statusWrites{}}
}

// predicate returns a predicate that lets everything through, and notices rivals.
func (r *duplicateOperator) predicate() predicate.TypedPredicate[client.Object] {
	return predicate.TypedFuncs[client.Object]{
		CreateFunc: func(event.TypedCreateEvent[client.Object]) bool { r.begin(); return true },
		UpdateFunc: func(e event.TypedUpdateEvent[client.Object]) bool {
			before, isBefore := e.ObjectOld.(*unstructured.Unstructured)
			after, isAfter := e.ObjectNew.(*unstructured.Unstructured)
			if isBefore && isAfter && r.unreported() && statusRewritten(before, after) {
				r.observe(after)
			}
			return true
		},
		DeleteFunc: func(e event.TypedDeleteEvent[client.Object]) bool {
			r.forget(client.ObjectKeyFromObject(e.Object))
			return true
		},
	}
}

// statusRewritten reports whether the engine, here or elsewhere, has written the status of a
// resource in a way that only who serves it does. Times of writes are in seconds, so that
// they do not tell two of one second apart: it was the engine if nobody else has written.
func statusRewritten(before, after *unstructured.Unstructured) bool {
	if after.GetDeletionTimestamp() != nil || reconcile.Disputed(before) || reconcile.Disputed(after) {
		return false
	}
	was, others := statusTime(before)
	is, now := statusTime(after)
	return was != nil && is != nil && !is.Before(was) && equality.Semantic.DeepEqual(others, now) &&
		statusContent(before) != statusContent(after)
}

// statusTime returns when the engine has last changed the status of a resource, or nil, and
// what others have written of the resource.
func statusTime(u *unstructured.Unstructured) (*metav1.Time, []metav1.ManagedFieldsEntry) {
	var at *metav1.Time
	others := slices.DeleteFunc(u.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		own := m.Manager == cluster.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "status"
		if own {
			at = m.Time
		}
		return own
	})
	return at, others
}

// unreported reports whether there is still something to be told.
func (r *duplicateOperator) unreported() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.reported
}

// begin notes that resources are known.
func (r *duplicateOperator) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began.IsZero() {
		r.began = r.now()
	}
}

func (r *duplicateOperator) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.writes[key]; w != nil && w.running == 0 {
		delete(r.writes, key)
	}
}

// observe looks at a resource whose status was written, by this process or by another.
func (r *duplicateOperator) observe(u *unstructured.Unstructured) {
	r.mu.Lock()
	w := r.writes[client.ObjectKeyFromObject(u)]
	switch {
	case r.reported, r.began.IsZero(), r.now().Sub(r.began) < predecessorTime, w.has(u):
		r.mu.Unlock()
		return
	case w != nil && w.running > 0:
		w.early = append(w.early, u)
		r.mu.Unlock()
		return
	}
	r.reported = true
	r.writes = nil // nothing is told again
	r.mu.Unlock()
	r.report(u)
}

// has reports whether a resource has a status that was answered to one of the writes.
func (w *statusWrites) has(u *unstructured.Unstructured) bool {
	if w == nil {
		return false
	}
	content := statusContent(u)
	return slices.ContainsFunc(w.answers, func(a statusAnswer) bool {
		return a.version == u.GetResourceVersion() || a.content == content
	})
}

// statusContent returns a digest of the status of a resource.
func statusContent(u *unstructured.Unstructured) uint64 {
	s, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status")
	text, _ := json.Marshal(s) // what came as JSON can be written as such
	h := fnv.New64a()
	_, _ = h.Write(text)
	return h.Sum64()
}

// writing notes that a status is being written.
func (r *duplicateOperator) writing(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported {
		return
	}
	if r.writes[key] == nil {
		r.writes[key] = &statusWrites{}
	}
	r.writes[key].running++
}

// written notes what a write was answered with, nil for an error, and looks at what was seen
// before that.
func (r *duplicateOperator) written(key types.NamespacedName, answer *unstructured.Unstructured) {
	r.mu.Lock()
	w := r.writes[key]
	if w == nil {
		r.mu.Unlock()
		return
	}
	w.running--
	if answer != nil {
		w.answers = append(w.answers, statusAnswer{answer.GetResourceVersion(), statusContent(answer)})
		w.answers = w.answers[max(0, len(w.answers)-answersKept):]
	}
	var early []*unstructured.Unstructured
	if w.running == 0 {
		early, w.early = w.early, nil
	}
	r.mu.Unlock()
	for _, u := range early {
		r.observe(u)
	}
}

// observedStatus is a cluster whose status writes are known to the rivals.
type observedStatus struct {
	cluster.Cluster

	duplicate *duplicateOperator
}

// ApplyStatus implements cluster.Cluster.
func (s observedStatus) ApplyStatus(ctx context.Context, resource *unstructured.Unstructured) error {
	key := client.ObjectKeyFromObject(resource)
	s.duplicate.writing(key)
	err := s.Cluster.ApplyStatus(ctx, resource) // it makes of it what was answered
	if err != nil {
		s.duplicate.written(key, nil)
		return err
	}
	s.duplicate.written(key, resource)
	return nil
}
