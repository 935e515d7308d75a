package reconcile

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

// rejections remembers what the API server has rejected of each resource; its zero value is
// ready for use.
type rejections struct {
	mu sync.Mutex
	of map[types.NamespacedName]*resourceRejections
}

// resourceRejections are those of one resource, for as long as what is asked for stays the same:
// a user's change of it, or another version of the package, is tried at once.
type resourceRejections struct {
	asked string
	by    map[cluster.Ref]rejection
}

// rejection is what the API server has said to an attempt, until that is made again.
type rejection struct {
	attempt rollout.Attempt
	refusal rollout.WriteFailure
	until   time.Time
}

// rejectionMemory are the rejections of one resource, as a rollout uses them.
type rejectionMemory struct {
	*rejections
	key   types.NamespacedName
	asked string
	now   func() time.Time
}

var _ rollout.Rejections = rejectionMemory{}

// rejected returns what is remembered for the resource.
func (s *state) rejected() rollout.Rejections {
	asked := fmt.Sprint(s.cr.GetUID(), s.cr.GetGeneration(), s.cr.GetAnnotations()[AnnotationReconcileAt], s.program.Digest())
	return rejectionMemory{&s.rejections, s.key(), asked, s.Now}
}

// Recall implements rollout.Rejections.
func (m rejectionMemory) Recall(a rollout.Attempt) (rollout.WriteFailure, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.of[m.key]
	if of == nil || of.asked != m.asked {
		return rollout.WriteFailure{}, false
	}
	before, ok := of.by[a.Ref]
	if !ok || before.attempt != a || !m.now().Before(before.until) {
		return rollout.WriteFailure{}, false
	}
	return before.refusal, true
}

// Keep implements rollout.Rejections.
func (m rejectionMemory) Keep(a rollout.Attempt, refusal rollout.WriteFailure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.rejections.of = map[types.NamespacedName]*resourceRejections{}
	}
	of := m.of[m.key]
	if of == nil || of.asked != m.asked {
		of = &resourceRejections{asked: m.asked, by: map[cluster.Ref]rejection{}}
		m.of[m.key] = of
	}
	maps.DeleteFunc(of.by, func(_ cluster.Ref, before rejection) bool { return !m.now().Before(before.until) }) // names may be new each time
	of.by[a.Ref] = rejection{a, refusal, m.now().Add(rollout.RejectedRetryAfter)}
}

// forget drops what is remembered of a resource that is gone.
func (r *rejections) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}
