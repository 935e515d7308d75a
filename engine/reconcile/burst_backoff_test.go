package reconcile

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

func TestOnlyTheLastOnesCountAsABurst(t *testing.T) {
	t.Parallel()
	limit := burstBackoff{allowed: 2, window: time.Minute, first: 10 * time.Second, last: time.Minute, quiet: time.Hour}
	for name, row := range map[string]struct {
		reason string
		// at is when it has happened, and now when it is wanted.
		at   []time.Duration
		now  time.Duration
		want bool
	}{
		"two at once":                 {"they are a burst", []time.Duration{0, time.Second}, 2 * time.Second, true},
		"two, until a minute is over": {"the first one is out of the window then", []time.Duration{0, 30 * time.Second}, time.Minute, false},
		"two, just before that":       {"the first one counts", []time.Duration{0, 30 * time.Second}, time.Minute - 1, true},
		"two after others":            {"what was long before does not end a burst", []time.Duration{0, 50 * time.Second, 110 * time.Second, 111 * time.Second}, 112 * time.Second, true},
		"one after others":            {"it is none of a burst", []time.Duration{0, time.Minute, 2 * time.Minute}, 2*time.Minute + time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a attempts
			began := time.Unix(1000, 0)
			for _, at := range row.at {
				limit.happened(&a, began.Add(at))
			}
			if got := limit.exceeded(&a, began.Add(row.now)); got != row.want {
				t.Errorf("%s: it is too often: %t", row.reason, got)
			}
		})
	}
}

func TestAttemptsAreKeptAsLongAsTheyHaveAnEffect(t *testing.T) {
	t.Parallel()
	limit := burstBackoff{allowed: 2, window: time.Minute, first: time.Minute, last: time.Hour, quiet: 30 * time.Second}
	began := time.Unix(1000, 0)
	for name, row := range map[string]struct {
		reason string
		of     attempts
		now    time.Duration
		want   bool
	}{
		"none":              {"nothing is remembered", attempts{}, 0, true},
		"wanted":            {"it has waited since", attempts{times: []time.Time{began}, pending: true}, time.Hour, false},
		"wanted at first":   {"it has waited since", attempts{pending: true}, 0, false},
		"within the window": {"it is part of a burst", attempts{times: []time.Time{began}}, time.Minute - 1, false},
		"after the window":  {"nothing depends on it", attempts{times: []time.Time{began}}, time.Minute, true},
	} {
		if got := limit.forgotten(&row.of, began.Add(row.now)); got != row.want {
			t.Errorf("%s: %s: it is forgotten: %t", name, row.reason, got)
		}
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

// documentedLimit matches a row of docs/timing.md with a limit of this package.
var documentedLimit = regexp.MustCompile("(?m)^\\| `engine/reconcile` \\| `(\\w+)` \\| allowed: (\\d+), window: (.+?), first: (.+?), last: (.+?), quiet: (.+?) \\|")

// A resource is written as often as the documentation says, whoever fights over its objects.
func TestTheLimitsOfWritesAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	limits := map[string]burstBackoff{
		"objectLimit": objectLimit, "stateLimit": stateLimit, "progressLimit": progressLimit, "storeLimit": storeLimit,
		"causeLimit": causeLimit, "evaluationLimit": evaluationLimit,
	}
	text, err := os.ReadFile("../../docs/timing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := documentedLimit.FindAllStringSubmatch(string(text), -1)
	if len(rows) != len(limits) {
		t.Fatalf("%d limits are documented, and there are %d", len(rows), len(limits))
	}
	for _, row := range rows {
		limit, name := limits[row[1]], row[1]
		allowed, _ := strconv.Atoi(row[2])
		window, first, last, quiet := documented(t, row[3]), documented(t, row[4]), documented(t, row[5]), documented(t, row[6])
		began := time.Unix(1000, 0)

		var a attempts
		for i := range allowed {
			if wait := limit.wait(&a, began); wait != 0 {
				t.Errorf("%s: after %d in a burst it waits %s, and %d happen at once", name, i, wait, allowed)
			}
			limit.happened(&a, began)
		}
		burst := a
		a.pending = true // it is wanted all the time
		if limit.exceeded(&a, began.Add(window)) || !limit.exceeded(&a, began.Add(window-1)) {
			t.Errorf("%s: the burst does not count for %s", name, window)
		}

		now, pauses := began, []time.Duration{}
		for range 40 {
			wait := limit.wait(&a, now)
			pauses, now = append(pauses, wait), now.Add(wait)
			limit.happened(&a, now)
			a.pending = true
		}
		if pauses[0] != first || slices.Max(pauses) != last {
			t.Errorf("%s: the pauses are %s, want from %s to %s", name, pauses, first, last)
		}

		rested, hurried := burst, burst
		if got := limit.wait(&hurried, began.Add(quiet-1)); got != max(0, first-quiet+1) {
			t.Errorf("%s: just before it was quiet for %s it waits %s", name, quiet, got)
		}
		if got := limit.wait(&rested, began.Add(quiet)); got != 0 || len(rested.times) > 0 {
			t.Errorf("%s: after it was quiet for %s it waits %s", name, quiet, got)
		}
	}
}

// documented returns a duration as docs/timing.md spells it.
func documented(t *testing.T, text string) time.Duration {
	t.Helper()
	out, err := time.ParseDuration(strings.NewReplacer(" min", "m", " ", "").Replace(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
