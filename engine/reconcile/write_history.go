package reconcile

import (
	"maps"
	"sync"
	"time"

	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// A writeHistory remembers what was written of one resource lately. A new process begins without one.
type writeHistory struct {
	// cause is what the writes result from besides the live objects.
	cause  string
	causes attempts
	// stored, state and progress are the writes of the status by their significance.
	stored, state, progress attempts
	rebuilds, finalizers    attempts
	// objects are by component and name. A component whose objects have new names each time is
	// there by its own name. mu guards it.
	objects map[string]*objectWrites
	mu      sync.Mutex
}

// objectWrites are the writes of one object, with the reason of the last.
type objectWrites struct {
	attempts
	why rollout.WriteCause
}

// begin records what a rollout results from. A new cause is acted upon at once.
func (h *writeHistory) begin(cause string, now time.Time) {
	maps.DeleteFunc(h.objects, func(_ string, w *objectWrites) bool { return objectLimit.forgotten(&w.attempts, now) })
	if h.cause == cause {
		return
	}
	h.cause = cause
	if causeLimit.attempt(&h.causes, now) != nil {
		return
	}
	h.objects, h.state, h.progress = nil, attempts{}, attempts{}
}

// statusWait returns how long a change of the status has to wait, or 0.
func (h *writeHistory) statusWait(w status.Significance, now time.Time) time.Duration {
	if limit, of := h.limitOf(w); of != nil {
		return limit.wait(of, now)
	}
	stateLimit.notWanted(&h.state, now)
	progressLimit.notWanted(&h.progress, now)
	storeLimit.notWanted(&h.stored, now)
	return 0
}

// statusWritten records that a status was written.
func (h *writeHistory) statusWritten(w status.Significance, now time.Time) {
	if limit, of := h.limitOf(w); of != nil {
		limit.happened(of, now)
	}
}

// limitOf returns the limit of changes of a significance with their history, which is nil for
// no change.
func (h *writeHistory) limitOf(w status.Significance) (burstBackoff, *attempts) {
	switch w {
	case status.ProgressOnly:
		return progressLimit, &h.progress
	case status.StateOnly:
		return stateLimit, &h.state
	case status.Substance:
		return storeLimit, &h.stored
	case status.NoChange:
	}
	return burstBackoff{}, nil
}

// A tooOftenError says that a resource has to wait before anything is done about it.
type tooOftenError struct{ wait time.Duration }

// Error says why.
func (e *tooOftenError) Error() string {
	return "its status or its finalizer was written too often: another client keeps changing it, or its spec"
}

// attempt records that something happens now. It errors with a tooOftenError if that has to wait.
func (b burstBackoff) attempt(a *attempts, now time.Time) error {
	if wait := b.wait(a, now); wait > 0 {
		return &tooOftenError{wait}
	}
	b.happened(a, now)
	return nil
}

// objectBackoff gives one rollout the earlier writes of its resource's objects.
type objectBackoff struct {
	*writeHistory
	now func() time.Time
	// grown are the components of which this rollout has written a new object.
	grown map[string]bool
}

var _ rollout.WriteBackoff = (*objectBackoff)(nil)

// Delay implements rollout.WriteBackoff.
func (b *objectBackoff) Delay(component, object string, need rollout.Need) rollout.WriteDelay {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.objects[component+"/"+object]
	if w == nil && !b.grown[component] && need == rollout.Wanted {
		w = b.objects[component]
	}
	if w == nil {
		return rollout.WriteDelay{}
	}
	look := objectLimit.notWanted
	if need == rollout.Wanted {
		look = objectLimit.wait
	}
	wait := look(&w.attempts, b.now())
	if wait == 0 && w.pause == 0 {
		return rollout.WriteDelay{}
	}
	return rollout.WriteDelay{Times: w.count, Why: w.why, Wait: wait, Longest: objectLimit.last}
}

// Wrote implements rollout.WriteBackoff.
func (b *objectBackoff) Wrote(component, object string, why rollout.WriteCause) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.objects == nil {
		b.objects = map[string]*objectWrites{}
	}
	if b.objects[component+"/"+object] == nil && !b.grown[component] {
		b.grown[component] = true
		b.record(component, rollout.WriteCause{Decision: why.Decision, Grows: true})
	}
	b.record(component+"/"+object, why)
}

func (b *objectBackoff) record(name string, why rollout.WriteCause) {
	if b.objects[name] == nil {
		b.objects[name] = &objectWrites{}
	}
	objectLimit.happened(&b.objects[name].attempts, b.now())
	b.objects[name].why = why
}
