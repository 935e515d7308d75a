package machine

import (
	"runtime"
	"testing"
	"time"
)

// A recorder notes that it was told of a failure.
type recorder struct {
	testing.TB

	failed bool
}

// Helper implements testing.TB.
func (*recorder) Helper() {}

// Errorf implements testing.TB.
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestProcessorTimeIsWhatAComputationTakesAndNotWhatItWaits(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a thread does not know its time")
	}
	const limit = 50 * time.Millisecond
	for name, row := range map[string]struct {
		do     func()
		failed bool
		reason string
	}{
		"it waits":    {func() { <-time.After(2 * limit) }, false, "others had the processor meanwhile"},
		"it computes": {func() { spin(time.Duration(2 * slowness() * float64(limit))) }, true, "that is what the limit is for"},
	} {
		r := &recorder{TB: t}
		if ExpectProcessorTime(r, limit, row.do); r.failed != row.failed {
			t.Errorf("%s: failed is %t: %s", name, r.failed, row.reason)
		}
	}
}

// spin takes processor time.
func spin(d time.Duration) {
	for began := threadTime(); threadTime()-began < d; {
		continue
	}
}
