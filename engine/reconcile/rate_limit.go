package reconcile

import "time"

// A rateLimit lets something happen often for a moment, and then in growing pauses. These
// are its limits; what has happened is in a turn.
type rateLimit struct {
	// allowed is how often it may happen within the window.
	allowed int
	window  time.Duration
	// first and last are the shortest and the longest pause.
	first, last time.Duration
	// quiet is how long it must not have been wanted to be forgotten.
	quiet time.Duration
}

// A turn is how often something has happened lately. Its zero value is never.
type turn struct {
	// times are the last ones, the oldest first.
	times []time.Time
	// pause is the present one; 0 is none.
	pause time.Duration
	// count is how often it has happened in all.
	count int
	// pending says that it was wanted, and has not happened since.
	pending bool
}

func (t *turn) latest() time.Time { return t.times[len(t.times)-1] }

// on reports whether something happens too often.
func (b rateLimit) on(t *turn, now time.Time) bool {
	return t.pause > 0 || (len(t.times) >= b.allowed && now.Sub(t.times[0]) < b.window)
}

// want returns how long something has to wait that is to happen, or 0.
func (b rateLimit) want(t *turn, now time.Time) time.Duration {
	if b.calm(t, now) == 0 {
		*t = turn{}
	}
	t.pending = true
	if !b.on(t, now) {
		return 0
	}
	return max(0, t.latest().Add(max(t.pause, b.first)).Sub(now))
}

// went notes that something has happened.
func (b rateLimit) went(t *turn, now time.Time) {
	if b.on(t, now) {
		t.pause = min(b.last, max(b.first, 2*t.pause))
	}
	t.times = append(t.times, now)
	t.times = t.times[max(0, len(t.times)-b.allowed):]
	t.count++
	t.pending = false
}

// calm returns how long something must still not be wanted to be forgotten, or 0.
func (b rateLimit) calm(t *turn, now time.Time) time.Duration {
	if t.pending || len(t.times) == 0 {
		return b.quiet
	}
	return max(0, b.quiet-now.Sub(t.latest()))
}

// rest returns how long something that is not wanted now has to stay so, or 0 when it
// never had to wait.
func (b rateLimit) rest(t *turn, now time.Time) time.Duration {
	t.pending = false
	if t.pause == 0 {
		return 0
	}
	calm := b.calm(t, now)
	if calm == 0 {
		*t = turn{}
	}
	return calm
}

// idle reports whether a turn can be forgotten.
func (b rateLimit) idle(t *turn, now time.Time) bool {
	return !t.pending && (len(t.times) == 0 || now.Sub(t.latest()) >= max(b.window, b.quiet))
}
