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

func TestABenchmarkFailsIfAnOperationTakesLongerThanDemanded(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a process does not know its time")
	}
	for name, row := range map[string]struct {
		limit      time.Duration
		operations int
		failed     bool
		reason     string
	}{
		"a generous one":  {time.Hour, 1, false, "nothing takes that long"},
		"a narrow one":    {time.Nanosecond, 1, true, "that is what the limit is for"},
		"many operations": {time.Hour, 1000, false, "the limit is that of each"},
	} {
		r, reported := &recorder{TB: t}, 0.0
		end := limitOperations(r, func() int { return row.operations }, func(n float64, _ string) { reported = n }, row.limit)
		spin(time.Millisecond)
		if end(); r.failed != row.failed || reported <= 0 {
			t.Errorf("%s: failed is %t, with %f s: %s", name, r.failed, reported, row.reason)
		}
	}
}

// spin takes processor time.
func spin(d time.Duration) {
	for began := threadTime(); threadTime()-began < d; {
		continue
	}
}
