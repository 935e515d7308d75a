package reconcile

import (
	"maps"
	"sync"
	"time"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
)

// rejections are what the API server has rejected of one resource. They count while what is asked
// for stays the same: a user's change of the resource, or another version of the package, is
// offered at once.
type rejections struct {
	mu    sync.Mutex
	asked string
	by    map[cluster.Ref]rejection
}

// A rejection is what the API server has answered to an attempt, until that is made again.
type rejection struct {
	attempt rollout.Attempt
	refusal rollout.WriteFailure
	until   time.Time
}

// rejectionMemory gives one rollout the rejections of its resource.
type rejectionMemory struct {
	*rejections
	now func() time.Time
}

var _ rollout.Rejections = rejectionMemory{}

// rejected returns what is remembered for the resource.
func (s *state) rejected() rollout.Rejections {
	r := &s.memory.rejections
	r.mu.Lock()
	defer r.mu.Unlock()
	if asked := s.request(); r.asked != asked {
		r.asked, r.by = asked, nil
	}
	return rejectionMemory{r, s.Now}
}

// Lookup implements rollout.Rejections.
func (m rejectionMemory) Lookup(a rollout.Attempt) (rollout.WriteFailure, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, ok := m.by[a.Ref]
	if !ok || before.attempt != a || !m.now().Before(before.until) {
		return rollout.WriteFailure{}, false
	}
	return before.refusal, true
}

// Record implements rollout.Rejections.
func (m rejectionMemory) Record(a rollout.Attempt, refusal rollout.WriteFailure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[cluster.Ref]rejection{}
	}
	// A package may compute new names each time, so that the old ones would never be looked up again.
	maps.DeleteFunc(m.by, func(_ cluster.Ref, before rejection) bool { return !m.now().Before(before.until) })
	m.by[a.Ref] = rejection{a, refusal, m.now().Add(rollout.RejectedRetryAfter)}
}
