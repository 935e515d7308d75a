package reconcile

import "time"

// A burstBackoff lets something happen often for a moment, and then in growing pauses. These
// are its limits; what has happened is in attempts.
type burstBackoff struct {
	// allowed is how often it may happen within the window.
	allowed int
	window  time.Duration
	// first and last are the shortest and the longest pause.
	first, last time.Duration
	// quiet is how long it must not have been wanted to be forgotten.
	quiet time.Duration
}

// A attempts is how often something has happened lately. Its zero value is never.
type attempts struct {
	// times are the last ones, the oldest first.
	times []time.Time
	// pause is the present one; 0 is none.
	pause time.Duration
	// count is how often it has happened in all.
	count int
	// pending says that it was wanted, and has not happened since.
	pending bool
}

func (t *attempts) latest() time.Time { return t.times[len(t.times)-1] }

// exceeded reports whether something happens too often.
func (b burstBackoff) exceeded(t *attempts, now time.Time) bool {
	return t.pause > 0 || (len(t.times) >= b.allowed && now.Sub(t.times[0]) < b.window)
}

// wait returns how long something has to wait that is to happen, or 0.
func (b burstBackoff) wait(t *attempts, now time.Time) time.Duration {
	if b.untilForgotten(t, now) == 0 {
		*t = attempts{}
	}
	t.pending = true
	if !b.exceeded(t, now) {
		return 0
	}
	return max(0, t.latest().Add(max(t.pause, b.first)).Sub(now))
}

// happened notes that something has happened.
func (b burstBackoff) happened(t *attempts, now time.Time) {
	if b.exceeded(t, now) {
		t.pause = min(b.last, max(b.first, 2*t.pause))
	}
	t.times = append(t.times, now)
	t.times = t.times[max(0, len(t.times)-b.allowed):]
	t.count++
	t.pending = false
}

// untilForgotten returns how long something must still not be wanted to be forgotten, or 0.
func (b burstBackoff) untilForgotten(t *attempts, now time.Time) time.Duration {
	if t.pending || len(t.times) == 0 {
		return b.quiet
	}
	return max(0, b.quiet-now.Sub(t.latest()))
}

// notWanted returns how long something that is not wanted now has to stay so, or 0 when it
// never had to wait.
func (b burstBackoff) notWanted(t *attempts, now time.Time) time.Duration {
	t.pending = false
	if t.pause == 0 {
		return 0
	}
	calm := b.untilForgotten(t, now)
	if calm == 0 {
		*t = attempts{}
	}
	return calm
}

// forgotten reports whether attempts can be forgotten.
func (b burstBackoff) forgotten(t *attempts, now time.Time) bool {
	return !t.pending && (len(t.times) == 0 || now.Sub(t.latest()) >= max(b.window, b.quiet))
}
