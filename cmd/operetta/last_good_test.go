package main

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"operetta.dev/engine/fault"
)

func TestStatusSaysWhereAPackageIsWrongAndNotWhatCUEQuotes(t *testing.T) {
	t.Parallel()
	at := fault.Position{File: "shop/shop.cue", Line: 7}
	for name, c := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"one":      {"file and line", fault.Faults{{Position: at, Path: "components.web", Message: `conflicting values "hunter2" and 5`}}, "shop/shop.cue:7: components.web; "},
		"several":  {"the first, and how many", fault.Faults{{Position: at, Message: "hunter2"}, {}, {}}, "shop/shop.cue:7 and 2 more; "},
		"no place": {"a crash of the evaluator", errors.New("CUE crashed on hunter2"), "the operator's log says why"},
		"a path":   {"a definition that is refused", fault.Faults{{Path: "versions.v1", Message: "hunter2"}}, "versions.v1; "},
	} {
		got := faultLocation(c.err)
		if !strings.HasPrefix(got, c.want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s: %q", name, c.reason, got)
		}
	}
}

// The clock is synctest's.
func TestWhatIsToldLaterIsTheLastAndMayBeCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l delayedCall
		var mu sync.Mutex
		var said []string
		say := func(what string) {
			l.schedule(outdatedReportDelay, func() {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, what)
			})
		}
		told := func() string {
			mu.Lock()
			defer mu.Unlock()
			return strings.Join(said, " ")
		}
		wait := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		say("a")
		wait(outdatedReportDelay / 2)
		say("b") // an author who is typing saves several mistakes
		wait(outdatedReportDelay / 2)
		if early := told(); early != "" {
			t.Errorf("early: %s", early)
		}
		wait(outdatedReportDelay)
		say("c")
		l.cancel()
		wait(2 * outdatedReportDelay)
		if got := told(); got != "b" {
			t.Errorf("told %q", got)
		}
	})
}
