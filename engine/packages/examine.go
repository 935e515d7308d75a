package packages

import (
	"context"
	"errors"
	"slices"
	"time"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/source"
)

// An examination is the check of one content. It may take long, and the next content of the Package must not wait for it.
type examination struct {
	background
	// at is when it ended, and tries is how many examinations of the content were ended before it.
	at        time.Time
	tries     int
	candidate Candidate
	err       error
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
func (e *examination) again() time.Duration { return doubled(examineAgain, maxExamineDelay, e.tries) }

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
	s.keepExams(wanted...)
	s.exams[digest] = r.examiner().begin(ctx, p.Name, snapshot, urgent, before)
	r.first.noteContent(p.Name)
	return s.exams[digest], nil
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

// begin begins an examination. One of the same content before it was ended, or is nil.
func (x examiner) begin(ctx context.Context, name string, snapshot *source.Snapshot, urgent urgency, before *examination) *examination {
	e := &examination{}
	if before != nil {
		urgent, e.tries = repeated, before.tries+1
	}
	ctx, e.background = newBackground(ctx)
	go x.run(ctx, name, e, x.queue.enter(urgent), snapshot)
	return e
}

// run examines a content when it is its turn, and has the Package reconciled then.
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
