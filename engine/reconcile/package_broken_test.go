package reconcile_test

import (
	"strings"
	"testing"

	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/status"
)

// Whoever reports that no version of a package is served asks again until the status says so.
func TestABrokenPackageIsReportedUntilTheStatusSaysSo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason  string
		prepare func(b *bench)
		// reported are what two reports in a row return, and writes how many statuses they write.
		reported [2]bool
		fails    bool
		writes   int
	}{
		"a resource":        {"the second report finds the first", func(*bench) {}, [2]bool{true, true}, false, 1},
		"a paused one":      {"nothing but a deletion happens to it", func(b *bench) { b.annotate(reconcile.AnnotationPaused, "true") }, [2]bool{}, false, 0},
		"a deleted one":     {"its deletion is reported in another way", func(b *bench) { b.holdResource(); act(b.t, b.memory, deleted) }, [2]bool{}, false, 0},
		"none":              {"it is gone", func(b *bench) { act(b.t, b.memory, deleted) }, [2]bool{}, false, 0},
		"an unwritable one": {"the status says nothing yet", func(b *bench) { b.reconciler.Resources = mute{b.reconciler.Resources} }, [2]bool{}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, timed)
			b.rest()
			row.prepare(b)
			before := len(b.memory.Changes())
			for i, want := range row.reported {
				got, err := b.reconciler.ReportPackageBroken(t.Context(), shopKey, "shop.cue:1: it is broken")
				if got != want || (err != nil) != row.fails {
					t.Errorf("%s: report %d returns %v and error %v", row.reason, i, got, err)
				}
			}
			if got := len(b.memory.Changes()) - before; got != row.writes {
				t.Errorf("%s: %d writes, want %d", row.reason, got, row.writes)
			}
			if got, _ := b.condition(status.ConditionReady); (got == "False PackageBroken") != row.reported[0] {
				t.Errorf("%s: Ready is %q", row.reason, got)
			}
		})
	}
}

// Whoever has no package for a kind asks the others, and waits for an answer.
func TestWhetherAResourceIsServedIsAskedOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason  string
		prepare func(b *bench)
		// asked says that there is a resource to ask about, and writes how many statuses two questions write.
		asked, fails bool
		writes       int
	}{
		"a resource":        {"the second question finds the first", func(*bench) {}, true, false, 1},
		"a paused one":      {"nothing but a deletion happens to it", func(b *bench) { b.annotate(reconcile.AnnotationPaused, "true") }, false, false, 0},
		"a deleted one":     {"its deletion is another matter", func(b *bench) { b.holdResource(); act(b.t, b.memory, deleted) }, false, false, 0},
		"none":              {"it is gone", func(b *bench) { act(b.t, b.memory, deleted) }, false, false, 0},
		"an unwritable one": {"nobody can see the question yet", func(b *bench) { b.reconciler.Resources = mute{b.reconciler.Resources} }, true, true, 0},
		"an unreadable one": {"nobody knows whether there is one", func(b *bench) { b.reconciler.Resources = unread{b.memory} }, false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, timed)
			b.rest()
			row.prepare(b)
			before := len(b.memory.Changes())
			for range 2 {
				got, err := b.reconciler.AskWhetherServed(t.Context(), shopKey)
				if got != row.asked || (err != nil) != row.fails {
					t.Errorf("%s: asked %t, error %v", row.reason, got, err)
				}
			}
			if got := len(b.memory.Changes()) - before; got != row.writes {
				t.Errorf("%s: %d writes, want %d", row.reason, got, row.writes)
			}
			if cr := b.find("Shop", shopKey.Name); cr != nil && reconcile.SaysNotServed(cr) != (row.writes > 0) {
				t.Errorf("%s: the status is %v", row.reason, b.status())
			}
		})
	}
}

func TestAResourceSaysThatTheVersionItIsPinnedToCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason  string
		prepare func(b *bench)
		fails   bool
		writes  int
	}{
		"a resource":        {"the second report finds the first", func(*bench) {}, false, 1},
		"a paused one":      {"nothing but a deletion happens to it", func(b *bench) { b.annotate(reconcile.AnnotationPaused, "true") }, false, 0},
		"none":              {"it is gone", func(b *bench) { act(b.t, b.memory, deleted) }, false, 0},
		"an unreadable one": {"nobody knows whether there is one", func(b *bench) { b.reconciler.Resources = unread{b.memory} }, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, timed)
			b.rest()
			row.prepare(b)
			before := len(b.memory.Changes())
			for range 2 {
				if err := b.reconciler.ReportRevisionUnusable(t.Context(), shopKey, "it is not kept"); (err != nil) != row.fails {
					t.Errorf("%s: the error is %v", row.reason, err)
				}
			}
			if got := len(b.memory.Changes()) - before; got != row.writes {
				t.Errorf("%s: %d writes, want %d", row.reason, got, row.writes)
			}
			if _, text := b.condition(status.ConditionReady); strings.Contains(text, "it is not kept") != (row.writes > 0) {
				t.Errorf("%s: it says %q", row.reason, text)
			}
		})
	}
}
