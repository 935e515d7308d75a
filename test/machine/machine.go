// Package machine says how busy the machine is that the tests run on, and how much of it something takes.
//
// A test is not about time unless its name says so. One that waits for what happens sooner or later waits for
// Patience; one with a limit of some seconds multiplies it, by Limit, where other processes compute; and one
// that bounds what a computation costs measures its ProcessorTime.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// Patience is how long a test waits for what happens sooner or later. It tells what hangs from what is
// slow, and is no statement about how long it should take.
const Patience = 3 * time.Minute

// pollInterval is the interval between two checks of Eventually.
const pollInterval = 5 * time.Millisecond

// maxShare bounds by how much a limit grows: beyond it, a test fails however busy the machine is.
const maxShare = 10

// Limit returns a limit of some seconds that holds on an idle machine, multiplied by how many
// processes share each processor. Something that takes a second of processor time takes ten
// where nine other processes compute, and that is no fault of what is tested.
func Limit(idle time.Duration) time.Duration {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return idle // another system than Linux
	}
	return time.Duration(float64(idle) * share(string(text), runtime.NumCPU()))
}

// share returns how many processes share each of some processors, from 1 to maxShare, by the text of
// /proc/loadavg. The average of the last minute lags behind a load that has just begun, so
// the number of processes that can run now counts as well.
func share(loadavg string, processors int) float64 {
	var minute, five, fifteen float64
	var now int
	if _, err := fmt.Sscanf(loadavg, "%f %f %f %d/", &minute, &five, &fifteen, &now); err != nil {
		return 1
	}
	return min(max(1, minute/float64(processors), float64(now)/float64(processors)), maxShare)
}

// Eventually polls until a check holds, and fails the test after Patience.
func Eventually(t testing.TB, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !check(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", Patience, what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(pollInterval):
		}
	}
}

// LimitProcessorTime makes a benchmark report how much processor time an operation takes, since the time by the clock is
// that of all that the machine does, and fail if it is more than a limit, which is that of a usual machine. The returned
// function ends the measurement.
func LimitProcessorTime(b *testing.B, limit time.Duration) (end func()) {
	b.Helper()
	return limitOperations(b, func() int { return b.N }, b.ReportMetric, limit)
}

// limitOperations is LimitProcessorTime for what says how many operations there were, and notes what each of them took.
func limitOperations(t testing.TB, operations func() int, report func(float64, string), limit time.Duration) (end func()) {
	t.Helper()
	limit = time.Duration(slowness() * float64(limit))
	began := processTime()
	return func() {
		t.Helper()
		each := (processTime() - began) / time.Duration(max(1, operations()))
		report(each.Seconds(), "cpu-s/op")
		if each > limit {
			t.Errorf("an operation took %s of processor time, not at most %s", each.Round(time.Millisecond), limit)
		}
	}
}

// ExpectProcessorTime calls a function, which starts no goroutines, and fails the test if it takes more
// processor time than a limit, which is that of a usual machine. How busy the machine is makes little difference to that, and for how slow it
// is the limit is multiplied.
func ExpectProcessorTime(t testing.TB, limit time.Duration, f func()) {
	t.Helper()
	limit = time.Duration(slowness() * float64(limit))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	f()
	if took := threadTime() - began; took > limit {
		t.Errorf("it took %s of processor time, not at most %s", took.Round(time.Millisecond), limit)
	}
}
