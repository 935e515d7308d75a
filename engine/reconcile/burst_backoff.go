package reconcile

import "time"

// A burstBackoff allows a burst of something, and then requires growing delays. It holds the
// limits, and attempts what has happened.
type burstBackoff struct {
	// allowed is how often it may happen within the window without a pause.
	allowed int
	window  time.Duration
	// first and last are the shortest and the longest pause.
	first, last time.Duration
	// quiet is how long it must not have been wanted until the attempts are forgotten.
	quiet time.Duration
}

// attempts are how often something has happened lately. The zero value is never.
type attempts struct {
	// times are the last ones, the oldest first.
	times []time.Time
	// pause is the present one; 0 is none.
	pause time.Duration
	// count is how often it has happened in all.
	count int
	// pending says that it was wanted and has not happened since.
	pending bool
}

// exceeded reports whether something happens too often.
func (b burstBackoff) exceeded(a *attempts, now time.Time) bool {
	return a.pause > 0 || (len(a.times) >= b.allowed && now.Sub(a.times[0]) < b.window)
}

// remaining returns how much is left of the pause of something that happens too often.
func (b burstBackoff) remaining(a *attempts, now time.Time) time.Duration {
	return max(0, a.times[len(a.times)-1].Add(max(a.pause, b.first)).Sub(now))
}

// wait records that something is wanted, and returns how long it has to wait, or 0.
func (b burstBackoff) wait(a *attempts, now time.Time) time.Duration {
	if b.untilForgotten(a, now) == 0 {
		*a = attempts{}
	}
	a.pending = true
	if !b.exceeded(a, now) {
		return 0
	}
	return b.remaining(a, now)
}

// happened records that something has happened.
func (b burstBackoff) happened(a *attempts, now time.Time) {
	if b.exceeded(a, now) {
		a.pause = min(b.last, max(b.first, 2*a.pause))
	}
	a.times = append(a.times, now)
	a.times = a.times[max(0, len(a.times)-b.allowed):]
	a.count++
	a.pending = false
}

// untilForgotten returns how long something must still not be wanted until its attempts are
// forgotten, or 0.
func (b burstBackoff) untilForgotten(a *attempts, now time.Time) time.Duration {
	if a.pending || len(a.times) == 0 {
		return b.quiet
	}
	return max(0, b.quiet-now.Sub(a.times[len(a.times)-1]))
}

// notWanted records that something is not wanted now. It returns how long that must last until
// the attempts are forgotten, or 0 when there never was a pause.
func (b burstBackoff) notWanted(a *attempts, now time.Time) time.Duration {
	a.pending = false
	if a.pause == 0 {
		return 0
	}
	left := b.untilForgotten(a, now)
	if left == 0 {
		*a = attempts{}
	}
	return left
}

// forgotten reports whether attempts have no effect any more.
func (b burstBackoff) forgotten(a *attempts, now time.Time) bool {
	return !a.pending && (len(a.times) == 0 || now.Sub(a.times[len(a.times)-1]) >= max(b.window, b.quiet))
}
