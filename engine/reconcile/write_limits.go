package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// writeLimits remembers what was written lately, by resource; its zero value is ready for
// use. After a restart everybody begins anew.
type writeLimits struct {
	mu        sync.Mutex
	resources map[types.NamespacedName]*writeHistory
	swept     time.Time
}

// A writeHistory is what was written of one resource.
type writeHistory struct {
	// cause is what its writes follow from besides what is there.
	cause  string
	causes attempts
	// stored, state and progress are the writes of the status by their weight.
	stored, state, progress attempts
	rebuilds                attempts
	// objects are by component and name, and what a component has more and more of by
	// its name.
	objects map[string]*objectWrites
}

// objectWrites are the writes of one object, with the reason of the last.
type objectWrites struct {
	attempts
	why rollout.WriteCause
}

// of returns the history of a resource. The caller has the lock.
func (b *writeLimits) of(key types.NamespacedName) *writeHistory {
	h := b.resources[key]
	if h == nil {
		if b.resources == nil {
			b.resources = map[types.NamespacedName]*writeHistory{}
		}
		h = &writeHistory{objects: map[string]*objectWrites{}}
		b.resources[key] = h
	}
	return h
}

// begin notes what a rollout follows from. Something new is acted upon at once.
func (b *writeLimits) begin(key types.NamespacedName, cause string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(now)
	h := b.of(key)
	if h.cause == cause {
		return
	}
	h.cause = cause
	if causeLimit.wait(&h.causes, now) > 0 {
		return
	}
	causeLimit.happened(&h.causes, now)
	h.objects, h.state, h.progress = map[string]*objectWrites{}, attempts{}, attempts{}
}

// sweep forgets what says nothing any more, now and then.
func (b *writeLimits) sweep(now time.Time) {
	if now.Sub(b.swept) < time.Minute {
		return
	}
	b.swept = now
	for _, h := range b.resources {
		for name, c := range h.objects {
			if objectLimit.forgotten(&c.attempts, now) {
				delete(h.objects, name)
			}
		}
	}
}

func (b *writeLimits) forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.resources, key)
}

// status returns how long a change of a status has to wait, or 0.
func (b *writeLimits) status(key types.NamespacedName, w status.Significance, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.of(key)
	switch w {
	case status.NoChange:
		stateLimit.notWanted(&h.state, now)
		progressLimit.notWanted(&h.progress, now)
		storeLimit.notWanted(&h.stored, now)
	case status.ProgressOnly:
		return progressLimit.wait(&h.progress, now)
	case status.StateOnly:
		return stateLimit.wait(&h.state, now)
	case status.Substance:
		return storeLimit.wait(&h.stored, now)
	}
	return 0
}

// reported notes that a status was written.
func (b *writeLimits) reported(key types.NamespacedName, w status.Significance, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.of(key)
	switch w {
	case status.ProgressOnly:
		progressLimit.happened(&h.progress, now)
	case status.StateOnly:
		stateLimit.happened(&h.state, now)
	case status.Substance:
		storeLimit.happened(&h.stored, now)
	case status.NoChange:
	}
}

// A tooOftenError says that a resource has to wait before anything is done about it.
type tooOftenError struct{ wait time.Duration }

// Error says why.
func (e *tooOftenError) Error() string {
	return "its status was written too often: somebody changes it, or its spec, all the time"
}

// storeInventory returns a tooOftenError when the inventory must not be stored now.
func (b *writeLimits) storeInventory(key types.NamespacedName, now time.Time) error {
	if wait := b.status(key, status.Substance, now); wait > 0 {
		return &tooOftenError{wait}
	}
	b.reported(key, status.Substance, now)
	return nil
}

// rebuild notes that the inventory of a resource is rebuilt, which asks for every kind
// there is. It errors with a tooOftenError.
func (b *writeLimits) rebuild(key types.NamespacedName, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.of(key)
	if wait := stateLimit.wait(&h.rebuilds, now); wait > 0 {
		return &tooOftenError{wait}
	}
	stateLimit.happened(&h.rebuilds, now)
	return nil
}

// objectBackoff is what one rollout of a resource is told of the writes before it.
type objectBackoff struct {
	*writeLimits
	key types.NamespacedName
	now func() time.Time
	// grown are the components of which this rollout has written a new object.
	grown map[string]bool
}

var _ rollout.WriteBackoff = (*objectBackoff)(nil)

// Delay implements rollout.WriteBackoff.
func (p *objectBackoff) Delay(component, object string, need rollout.Need) rollout.WriteDelay {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, known := p.of(p.key).objects[component+"/"+object]
	if !known && !p.grown[component] {
		c, known = p.of(p.key).objects[component]
		known = known && need == rollout.Wanted
	}
	if !known {
		return rollout.WriteDelay{}
	}
	look := objectLimit.notWanted
	if need == rollout.Wanted {
		look = objectLimit.wait
	}
	wait := look(&c.attempts, p.now())
	if wait == 0 && c.pause == 0 {
		return rollout.WriteDelay{}
	}
	return rollout.WriteDelay{Times: c.count, Why: c.why, Wait: wait, Longest: objectLimit.last}
}

// Wrote implements rollout.WriteBackoff.
func (p *objectBackoff) Wrote(component, object string, why rollout.WriteCause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.of(p.key)
	note := func(name string, why rollout.WriteCause) {
		if h.objects[name] == nil {
			h.objects[name] = &objectWrites{}
		}
		objectLimit.happened(&h.objects[name].attempts, p.now())
		h.objects[name].why = why
	}
	if h.objects[component+"/"+object] == nil && !p.grown[component] {
		p.grown[component] = true
		note(component, rollout.WriteCause{Verb: why.Verb, Grows: true})
	}
	note(component+"/"+object, why)
}

// cause returns what a rollout follows from besides what is there: whatever a person or
// a program changes to have another one.
func (s *state) cause(in rollout.Input) string {
	_, digest := s.identify()
	patches := map[string]int64{}
	for _, p := range s.patches {
		patches[string(p.object.GetUID())] = p.object.GetGeneration()
	}
	config, err := json.Marshal(in.Config)
	if err != nil {
		return "" // it came from YAML
	}
	all := fmt.Sprint(s.cr.GetUID(), s.cr.GetGeneration(), digest, s.cr.GetAnnotations()[AnnotationReconcileAt], patches, string(config))
	sum := sha256.Sum256([]byte(all)) // a configuration may be long, and is nobody's business
	return hex.EncodeToString(sum[:])
}
