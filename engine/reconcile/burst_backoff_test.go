package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestABurstIsForgottenOnceItWasQuietForLongEnough(t *testing.T) {
	t.Parallel()
	limit := burstBackoff{allowed: 2, window: time.Minute, first: time.Minute, last: time.Hour, quiet: 30 * time.Second}
	for name, row := range map[string]struct {
		reason string
		// wanted is when it is wanted after the burst; want are the waits.
		wanted, want []time.Duration
	}{
		"too early":               {"the pause goes on", []time.Duration{29 * time.Second}, []time.Duration{31 * time.Second}},
		"quiet":                   {"nobody wanted it meanwhile", []time.Duration{30 * time.Second}, []time.Duration{0}},
		"wanted in between":       {"it was pending, not quiet", []time.Duration{time.Second, 40 * time.Second}, []time.Duration{59 * time.Second, 20 * time.Second}},
		"wanted until it is over": {"the pause is over", []time.Duration{time.Second, time.Minute}, []time.Duration{59 * time.Second, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a attempts
			last := time.Unix(1000, 0)
			for range 3 {
				limit.wait(&a, last)
				limit.happened(&a, last)
			}
			var got []time.Duration
			for _, after := range row.wanted {
				got = append(got, limit.wait(&a, last.Add(after)))
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s: waits (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestThePausesOfABurstDoubleUpToTheLongest(t *testing.T) {
	t.Parallel()
	limit := burstBackoff{allowed: 2, window: time.Minute, first: 10 * time.Second, last: time.Minute, quiet: time.Hour}
	var a attempts
	var got []time.Duration
	now := time.Unix(1000, 0)
	for range 7 {
		wait := limit.wait(&a, now)
		got = append(got, wait)
		now = now.Add(wait)
		limit.happened(&a, now)
	}
	want := []time.Duration{0, 0, 10 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

// A component says that somebody fights over its objects while there is a pause.
func TestABurstEndsOnceItWasNotWantedForLongEnough(t *testing.T) {
	t.Parallel()
	limit := burstBackoff{allowed: 2, window: time.Minute, first: time.Minute, last: time.Hour, quiet: 30 * time.Second}
	var a attempts
	last := time.Unix(1000, 0)
	for range 3 {
		limit.happened(&a, last)
	}
	limit.wait(&a, last.Add(time.Second))
	if left := limit.notWanted(&a, last.Add(2*time.Second)); left != 28*time.Second || a.pause == 0 {
		t.Errorf("it must not be wanted for another %s, want 28s, and the pause is %s", left, a.pause)
	}
	if left := limit.notWanted(&a, last.Add(30*time.Second)); left != 0 || a.pause != 0 || a.count != 0 {
		t.Errorf("it must not be wanted for another %s, and what is remembered is %+v, want nothing", left, a)
	}
}
