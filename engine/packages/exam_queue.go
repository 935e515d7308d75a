package packages

import (
	"context"
	"slices"
	"sync"
)

// An urgency orders examinations that wait for their turn: there may be one for many at a time, and one that
// loops keeps its turn for a minute.
type urgency int

// The urgencies.
const (
	// accepted contents were examined before. After a restart they come before all others.
	accepted urgency = iota
	// changed contents are new.
	changed
	// repeated are contents whose examination was ended before.
	repeated
)

// An examQueue lets some examinations run at a time, the most urgent first.
type examQueue struct {
	mu      sync.Mutex
	running int
	waiting []*queued
}

// A queued is an examination that waits.
type queued struct {
	urgency urgency
	begin   chan struct{}
}

// enter makes an examination wait for a turn.
func (q *examQueue) enter(u urgency) *queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	mine := &queued{urgency: u, begin: make(chan struct{})}
	q.waiting = append(q.waiting, mine)
	return mine
}

// take waits for a turn, and returns a function that ends it. limit is how many may run at a time, and
// held reports whether only contents that were accepted before may begin yet.
func (q *examQueue) take(ctx context.Context, mine *queued, limit int, held func() bool) (func(), error) {
	next := func() { q.next(limit, held) }
	next()
	select {
	case <-mine.begin:
	case <-ctx.Done():
		q.leave(mine)
		next()
		return nil, ctx.Err()
	}
	return func() {
		q.mu.Lock()
		q.running--
		q.mu.Unlock()
		next()
	}, nil
}

// leave ends the wait for a turn, or the turn if it has begun meanwhile.
func (q *examQueue) leave(mine *queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.waiting, mine); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
		return
	}
	q.running--
}

// next begins as many turns as may run, the most urgent first, and of those the first that came.
func (q *examQueue) next(limit int, held func() bool) {
	only := held()
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.SortStableFunc(q.waiting, func(a, b *queued) int { return int(a.urgency - b.urgency) })
	for q.running < max(1, limit) && len(q.waiting) > 0 && (!only || q.waiting[0].urgency == accepted) {
		close(q.waiting[0].begin)
		q.waiting = q.waiting[1:]
		q.running++
	}
}
