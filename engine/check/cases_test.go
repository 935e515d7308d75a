package check

import (
	"fmt"
	"testing"
)

func TestEveryPairOfChoicesIsInACase(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason   string
		choices  []int
		bound    int
		cases    int
		complete bool
		chosen   int
	}{
		"NoBranches":      {"the simplest case is always tried", nil, 10, 1, true, 0},
		"AllCombinations": {"they are few", []int{2, 3}, 10, 6, true, 5},
		"Pairs":           {"all combinations would be 59049", []int{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, 64, 25, true, 30},
		"Bounded":         {"there is not enough room for every pair", []int{3, 3, 3, 3, 3}, 4, 4, false, 0},
		"OneBranch":       {"it has no pairs, and each case has another choice", []int{20}, 6, 6, true, 6},
		"ManyBranches":    {"those beyond the limit take turns, and the last pairs find no room", many(2, maxPaired+5), 40, 40, false, 2*maxPaired + 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCover(branchesWith(row.choices), topLevel(len(row.choices)))
			got := cases(c, row.bound)
			report := Report{}
			report.count(c, got)
			if len(got) > row.cases || (report.Pairs == report.Paired) != row.complete {
				t.Errorf("%s: got %d cases with %d of %d pairs, want at most %d", row.reason, len(got), report.Paired, report.Pairs, row.cases)
			}
			if row.chosen > 0 && report.Chosen != row.chosen {
				t.Errorf("%s: %d of %d choices are in the cases, want %d", row.reason, report.Chosen, report.Choices, row.chosen)
			}
		})
	}
}

// topLevel are the places of branches that are in every resource.
func topLevel(n int) [][]needs {
	out := make([][]needs, n)
	for i := range out {
		out[i] = []needs{{}}
	}
	return out
}

// TestAChoiceCountsOnlyWhereItIsWritten: without the list around a field, its value is in no resource.
func TestAChoiceCountsOnlyWhereItIsWritten(t *testing.T) {
	t.Parallel()
	// The first two are lists that may be empty, each with an element that has the next two as fields; the last
	// stands in a list in the second list.
	choices := []int{2, 2, 3, 3, 3, 3, 2}
	places := [][]needs{{{}}, {{}}, {{0: 1}}, {{0: 1}}, {{1: 1}}, {{1: 1}}, {{1: 1, 5: 2}}}
	for name, row := range map[string]struct {
		reason   string
		bound    int
		complete bool
	}{
		"Enough": {"every choice and pair that a resource can have", 100, true},
		"All":    {"no resource twice", 1000, true},
		"ForOne": {"each choice at least", 8, false},
		"TooFew": {"nothing is counted that is not there", 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCover(branchesWith(choices), places)
			got := cases(c, row.bound)
			report := Report{}
			report.count(c, got)
			written, made := map[string]bool{}, map[string]bool{}
			for _, s := range got {
				text := ""
				for i, choice := range s {
					if p := places[i][0]; holds(p, s) {
						written[fmt.Sprint(i, "=", choice)] = true
						text += fmt.Sprint(i, "=", choice, " ")
						for j := range i {
							if holds(places[j][0], s) {
								written[fmt.Sprint(j, "=", s[j], " ", i, "=", choice)] = true
							}
						}
					}
				}
				if made[text] {
					t.Errorf("%s: %s is made twice", row.reason, text)
				}
				made[text] = true
			}
			if report.Chosen+report.Paired != len(written) {
				t.Errorf("%s: %d are counted, and %d written", row.reason, report.Chosen+report.Paired, len(written))
			}
			if (report.Paired == report.Pairs) != row.complete || row.bound >= 8 && report.Chosen != 18 {
				t.Errorf("%s: %d cases: got %+v", row.reason, len(got), report)
			}
		})
	}
}

func holds(n needs, s selection) bool {
	for i, choice := range n {
		if s[i] != choice {
			return false
		}
	}
	return true
}

func many(choices, branches int) []int {
	var out []int
	for range branches {
		out = append(out, choices)
	}
	return out
}

func branchesWith(choices []int) []*branch {
	var out []*branch
	for i, n := range choices {
		out = append(out, &branch{path: fmt.Sprint("spec.f", i), choices: make([]choice, n)})
	}
	return out
}
