package source

import (
	"context"
	"time"
)

// Watch reads a package periodically until the context ends. It calls changed, from one
// goroutine, with each snapshot whose digest differs from the previous one, and with each new
// error. last is the Fingerprint with which the first result is compared.
//
// It reports a change only after two equal readings in a row, so that a half-written file is
// not taken for a version.
func Watch(ctx context.Context, last string, read func() (*Snapshot, error), changed func(*Snapshot, error)) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	seen := last
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		snapshot, err := read()
		now := Fingerprint(snapshot, err)
		if now == seen && now != last {
			last = now
			changed(snapshot, err)
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
