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
	}{
		"NoBranches":      {"the simplest case is always tried", nil, 10, 1, true},
		"AllCombinations": {"they are few", []int{2, 3}, 10, 6, true},
		"Pairs":           {"all combinations would be 59049", []int{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, 64, 25, true},
		"Bounded":         {"there is not enough room for every pair", []int{3, 3, 3, 3, 3}, 4, 4, false},
		"ManyBranches":    {"those beyond the limit take turns, and the last pairs find no room", many(2, maxPaired+5), 40, 40, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			branches := branchesWith(row.choices)
			got, pairs, tried := cases(branches, row.bound)
			if len(got) > row.cases || (pairs == tried) != row.complete {
				t.Errorf("%s: got %d cases with %d of %d pairs, want at most %d", row.reason, len(got), tried, pairs, row.cases)
			}
			seen := map[pair]bool{}
			for _, s := range got {
				for i := range min(len(s), maxPaired) {
					for j := i + 1; j < min(len(s), maxPaired); j++ {
						seen[pair{i, s[i], j, s[j]}] = true
					}
				}
				for i, choice := range s {
					if choice >= len(branches[i].choices) {
						t.Errorf("branch %d has no choice %d", i, choice)
					}
				}
			}
			if len(seen) != tried {
				t.Errorf("%s: %d pairs are in the cases, and %d are counted", row.reason, len(seen), tried)
			}
		})
	}
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
