package packages

import (
	"context"
	"errors"
	"slices"
	"time"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/source"
)

// An examination is the check of one content. It runs beside the reconciles, because it may take long: the
// next content of the Package must not wait for it.
type examination struct {
	cancel context.CancelFunc
	// done is closed when candidate and err are set.
	done chan struct{}
	// at is when it ended, and tries is how many examinations of the content were ended before it.
	at        time.Time
	tries     int
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
	if !e.ended() || e.err == nil || now.Sub(e.at) < e.again() {
		return false
	}
	return !e.foundFaults()
}

// foundFaults reports whether an examination that has ended has found what is wrong with its content.
func (e *examination) foundFaults() bool {
	_, certain := errors.AsType[fault.Faults](e.err)
	return certain
}

// again returns after what time a check that was ended is repeated. One that is always ended takes ever less
// of the time of others.
func (e *examination) again() time.Duration {
	delay := examineAgain
	for range e.tries {
		delay = min(2*delay, examineSeldom)
	}
	return delay
}

// examine returns the examination of a content, which it begins if there is none.
func (r *Reconciler) examine(ctx context.Context, p Package, s *state, snapshot *source.Snapshot) (*examination, error) {
	digest := snapshot.Digest()
	before := s.exams[digest]
	if before != nil && !before.outdated(r.Now()) {
		return before, nil
	}
	last, err := r.keeper().lastGood(ctx, p, s)
	if err != nil {
		return nil, err
	}
	wanted := []string{digest, s.content.digest()}
	urgent := changed
	if last != nil {
		wanted = append(wanted, last.digest)
		if last.digest == digest || s.canary.inProgress() && s.canary.is(digest) {
			urgent = accepted // what was tried by a canary was examined before
		}
	}
	e := &examination{done: make(chan struct{})}
	if before != nil {
		urgent, e.tries = repeated, before.tries+1
	}
	s.keepExams(wanted...)
	ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx)) // a reconcile ends before its examinations
	s.exams[digest] = e
	go r.examiner().run(ctx, p.Name, e, r.exams.enter(urgent), snapshot)
	r.first.came(p.Name)
	return e, nil
}

// An examiner examines contents, when it is their turn.
type examiner struct {
	Examiner

	enqueue func(name string)
	now     func() time.Time
	queue   *examQueue
	first   *firstLoads
}

// examiner returns what examines contents.
func (r *Reconciler) examiner() examiner {
	return examiner{r.Examiner, r.Enqueue, r.Now, &r.exams, &r.first}
}

// run examines a content when it is its turn, and has the Package stepped then.
func (x examiner) run(ctx context.Context, name string, e *examination, mine *queued, snapshot *source.Snapshot) {
	defer e.cancel()
	end, err := x.queue.take(ctx, mine, x.Slots(), x.first.incomplete)
	if err == nil {
		e.candidate, err = x.Examine(ctx, snapshot)
		end()
	}
	e.err, e.at = err, x.now()
	close(e.done)
	x.enqueue(name)
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
