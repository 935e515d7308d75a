package packages

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/source"
)

// An examination is the check of one content. It runs beside the steps, because it may take long: the
// next content of the Package must not wait for it.
type examination struct {
	cancel context.CancelFunc
	// done is closed when candidate and err are set.
	done chan struct{}
	// began is when it began.
	began     time.Time
	candidate Candidate
	err       error
}

// ended reports whether the result is known.
func (e *examination) ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// outdated reports whether a check that was ended is to be repeated.
func (e *examination) outdated(now time.Time) bool {
	if !e.ended() || e.err == nil || now.Sub(e.began) < examineAgain {
		return false
	}
	_, certain := errors.AsType[fault.Faults](e.err)
	return !certain
}

// examine returns the examination of a content, which it begins if there is none.
func (r *Reconciler) examine(ctx context.Context, name string, s *state, snapshot *source.Snapshot) *examination {
	digest := snapshot.Digest()
	if e := s.exams[digest]; e != nil && !e.outdated(r.Now()) {
		return e
	}
	wanted := []string{digest, s.content.digest()}
	if len(s.revisions) > 0 {
		wanted = append(wanted, s.revisions[0].digest)
	}
	s.keepExams(wanted...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a step ends before its examinations
	e := &examination{cancel: cancel, done: make(chan struct{}), began: r.Now()}
	s.exams[digest] = e
	go func() {
		defer cancel()
		e.candidate, e.err = r.Examiner.Examine(ctx, snapshot)
		close(e.done)
		r.Enqueue(name)
	}()
	return e
}

// keepExams ends and forgets all examinations but those of some contents.
func (s *state) keepExams(digests ...string) {
	for digest, e := range s.exams {
		if !slices.Contains(digests, digest) {
			e.cancel()
			delete(s.exams, digest)
		}
	}
}

// firstLoads knows the Packages that existed when the process began, until each has been tried.
type firstLoads struct {
	mu       sync.Mutex
	expected map[string]bool
	done     map[string]bool
	all      chan struct{}
}

// Loaded returns a channel that is closed once each Package that existed at the start has been tried.
func (r *Reconciler) Loaded() <-chan struct{} {
	r.first.mu.Lock()
	defer r.first.mu.Unlock()
	return r.first.channel()
}

// Expect says which Packages exist at the start.
func (r *Reconciler) Expect(names []string) {
	f := &r.first
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expected = map[string]bool{}
	for _, name := range names {
		if !f.done[name] {
			f.expected[name] = true
		}
	}
	f.closeIfEmpty()
}

// tried says that a Package has been tried.
func (f *firstLoads) tried(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.expected == nil {
		if f.done == nil {
			f.done = map[string]bool{}
		}
		f.done[name] = true
		return
	}
	delete(f.expected, name)
	f.closeIfEmpty()
}

func (f *firstLoads) closeIfEmpty() {
	f.done = nil
	if len(f.expected) > 0 {
		return
	}
	select {
	case <-f.channel():
	default:
		close(f.channel())
	}
}

func (f *firstLoads) channel() chan struct{} {
	if f.all == nil {
		f.all = make(chan struct{})
	}
	return f.all
}
