package source

import (
	"context"
	"time"
)

// Watch reads a package again and again until the context ends, and calls
// changed, from one goroutine, with each snapshot whose digest differs from the
// one before it, and with each new error to read it. The first is compared with the
// State of an earlier reading.
//
// A change counts once two readings in a row agree, so that a file that is being
// written is not taken for a version.
func Watch(ctx context.Context, last string, read func() (*Snapshot, error), changed func(*Snapshot, error)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	seen := last
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		snapshot, err := read()
		now := State(snapshot, err)
		if now == seen && now != last {
			last = now
			changed(snapshot, err)
		}
		seen = now
	}
}

// State tells one outcome of reading a package from another: it is the digest, or else
// the error.
func State(s *Snapshot, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return s.Digest()
}
