package lifecycle

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

// refusals remembers what the API server has rejected of each resource; its zero value is
// ready for use.
type refusals struct {
	mu sync.Mutex
	of map[types.NamespacedName]*refusalsOf
}

// refusalsOf are those of one resource, for as long as what is asked for stays the same:
// a user's change of it, or another version of the package, is tried at once.
type refusalsOf struct {
	asked string
	said  map[cluster.Ref]said
}

type said struct {
	to    rollout.Attempt
	what  rollout.Refusal
	until time.Time
}

// memory are the refusals of one resource, as a rollout uses them.
type memory struct {
	*refusals
	key   types.NamespacedName
	asked string
	now   func() time.Time
}

var _ rollout.Refusals = memory{}

// refused returns what is remembered for the resource.
func (s *state) refused() rollout.Refusals {
	asked := fmt.Sprint(s.cr.GetUID(), s.cr.GetGeneration(), s.cr.GetAnnotations()[AnnotationReconcileAt], s.program.Digest())
	return memory{&s.refusals, s.key(), asked, s.Now}
}

// Recall implements rollout.Refusals.
func (m memory) Recall(a rollout.Attempt) (rollout.Refusal, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.of[m.key]
	if of == nil || of.asked != m.asked {
		return rollout.Refusal{}, false
	}
	before, ok := of.said[a.Ref]
	if !ok || before.to != a || !m.now().Before(before.until) {
		return rollout.Refusal{}, false
	}
	return before.what, true
}

// Keep implements rollout.Refusals.
func (m memory) Keep(a rollout.Attempt, what rollout.Refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.refusals.of = map[types.NamespacedName]*refusalsOf{}
	}
	of := m.of[m.key]
	if of == nil || of.asked != m.asked {
		of = &refusalsOf{asked: m.asked, said: map[cluster.Ref]said{}}
		m.of[m.key] = of
	}
	of.said[a.Ref] = said{a, what, m.now().Add(rollout.RejectedAgain)}
}

// forget drops what is remembered of a resource that is gone.
func (r *refusals) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}
