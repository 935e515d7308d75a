package testcase

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChosenTakesTheShortOnesFirst: who reads the first schedule that ends otherwise wants a short one.
func TestChosenTakesTheShortOnesFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason     string
		writes     []int
		bound      int
		one, pairs int
	}{
		"a bound that is enough":             {"all are tried", []int{2, 1}, 10_000, 17, 19},
		"a bound that one deviation fits":    {"each of one deviation is tried before any pair", []int{2, 1}, 20, 17, 3},
		"a bound of one deviation exactly":   {"no pair takes the place of a shorter one", []int{2, 1}, 17, 17, 0},
		"a bound that one deviation is over": {"a share is left for pairs, which find what a single one does not", []int{50, 50}, 200, 150, 50},
		"a bound of one":                     {"one deviation is what a person wants to see first", []int{50, 50}, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := schedules(c.writes)
			got := chosen(one, two, c.bound)
			names := map[string]bool{}
			for _, s := range got {
				names[s.String()] = true
			}
			if len(names) != len(got) {
				t.Errorf("%d of %d schedules are tried twice", len(got)-len(names), len(got))
			}
			first := slices.IndexFunc(got, func(s schedule) bool { return slices.ContainsFunc(two, same(s)) })
			if first < 0 {
				first = len(got)
			}
			if diff := cmp.Diff([]int{c.one, c.pairs}, []int{first, len(got) - first}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if slices.ContainsFunc(got[first:], func(s schedule) bool { return slices.ContainsFunc(one, same(s)) }) {
				t.Error("a schedule with one deviation comes behind one with two")
			}
		})
	}
}

// same returns whether a schedule is the same as another one.
func same(s schedule) func(schedule) bool {
	return func(o schedule) bool { return o.String() == s.String() }
}

// TestSpreadMissesNoKind: what fails alternates from one schedule to the next, and an even distance would meet the same
// each time.
func TestSpreadMissesNoKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason         string
		period, all, n int
	}{
		"half of them":        {"each second one would be the first or third kind", 4, 400, 200},
		"a quarter of them":   {"each fourth one would be the first kind", 4, 800, 200},
		"an eighth of them":   {"each eighth one would be the first kind", 4, 1600, 200},
		"a third of them":     {"each third one meets all kinds anyway", 4, 600, 200},
		"a seventh, of seven": {"those with two deviations have seven kinds", 7, 700, 100},
		"nearly all":          {"", 4, 201, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := make([]schedule, c.all)
			for i := range all {
				all[i].step = i
			}
			got := spread(all, c.n)
			kinds := map[int]int{}
			for i, s := range got {
				kinds[s.step%c.period]++
				if i > 0 && s.step <= got[i-1].step {
					t.Fatalf("%d comes behind %d", s.step, got[i-1].step)
				}
			}
			if len(got) != c.n {
				t.Errorf("%d, want %d", len(got), c.n)
			}
			for kind := range c.period {
				if kinds[kind] < c.n/c.period/2 {
					t.Errorf("%s: %d of %d are of kind %d", c.reason, kinds[kind], c.n, kind)
				}
			}
		})
	}
}
