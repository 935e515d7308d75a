package source

import (
	"context"
	"time"
)

// An Outcome says whether a version of a package is to be passed on again.
type Outcome int

// The outcomes.
const (
	// Final: it is served, or its content is at fault. Only another version is passed on.
	Final Outcome = iota
	// Retry: something else than its content keeps it from being served, which may pass. It is passed on again.
	Retry
	// RetrySoon: a permission keeps it from being served, which may be granted at any time. It is passed on again.
	RetrySoon
)

// due reports whether a version is passed on again so long after the last time.
func (o Outcome) due(after time.Duration) bool {
	switch o {
	case Retry:
		return after >= retryInterval
	case RetrySoon:
		return after >= refusedInterval
	case Final:
	}
	return false
}

// Watch reads a package periodically until the context ends. It calls changed, from one
// goroutine, with each snapshot whose digest differs from the previous one, and with each new
// error. last is the Fingerprint with which the first result is compared, and outcome what became of that. A version to
// be retried is passed again every retryInterval or refusedInterval, as long as the outcome stays the same.
//
// It reports a change only after two equal readings in a row, so that a half-written file is
// not taken for a version.
func Watch(ctx context.Context, last string, outcome Outcome, read func() (*Snapshot, error), changed func(*Snapshot, error) Outcome) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	seen, told := last, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		snapshot, err := read()
		now := Fingerprint(snapshot, err)
		if now == seen && (now != last || outcome.due(time.Since(told))) {
			last = now
			outcome = changed(snapshot, err)
			told = time.Now()
		}
		seen = now
	}
}

// Fingerprint identifies the result of reading a package: by its digest, or else by the error.
func Fingerprint(s *Snapshot, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return s.Digest()
}
