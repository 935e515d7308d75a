package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A memory is what the process remembers of one resource between its reconciles. It ends with the
// process: whatever has to survive that is in the status. A resource has one reconcile at a time; a
// part has a lock if the components of a layer use it, because those are applied concurrently.
type memory struct {
	// uid is that of the resource: another one of its name remembers nothing.
	uid types.UID
	// statusWritten is when the status was last written.
	statusWritten time.Time
	// changed is when a reconcile last found something different from the one before.
	changed       time.Time
	salts         salts
	rejections    rejections
	podProblems   podProblems
	writes        writeHistory
	evaluation    exceededEvaluation
	refusedStatus refusedStatus
	// read is what the last reconcile has read, or nil if it has failed, and lastNoop the same if it has found nothing to do.
	read     *reading
	lastNoop *noop
	// refusals are the writes to the resource that the API server refuses, and that were reported to people.
	refusals map[ownWrite]reportedRefusal
}

// memories has the memory of each resource. Its zero value is ready for use.
type memories struct {
	mu sync.Mutex
	of map[types.NamespacedName]*memory
}

// get returns the memory of a resource, which is empty for a new one. A resource may be deleted and
// created again before a reconcile sees that it was gone.
func (m *memories) get(key types.NamespacedName, uid types.UID) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName]*memory{}
	}
	if m.of[key] == nil || m.of[key].uid != uid {
		m.of[key] = &memory{uid: uid}
	}
	return m.of[key]
}

// peek returns the memory of a resource of a name, or nil.
func (m *memories) peek(key types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[key]
}

// forget drops the memory of a resource that is gone.
func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, key)
}

// lookAgainShare is which part of the time for which a resource has waited passes until the operator looks again.
const lookAgainShare = 10

// lookAgain returns when to look again at an object that is in the way. A tenant may have hundreds of resources with one, and each look
// is a request.
func (m *memory) lookAgain(now time.Time) time.Duration {
	if m.changed.IsZero() {
		m.changed = now
	}
	return min(now.Sub(m.changed)/lookAgainShare, maxLookAgain)
}
