package check

import "slices"

// A selection is the choice for each branch, by number. Choice 0 is the simplest one.
type selection []int

// maxPaired is how many branches are tried in pairs; the choices of any others take turns. The number of pairs
// grows with the square, and 120 branches have some 60,000.
const maxPaired = 120

// cases returns the selections to try, the simplest first: all combinations if there are no more than the bound,
// and otherwise so many that each pair of choices of two branches is in one of them, up to the bound. It
// returns how many pairs there are, and how many are tried.
func cases(branches []*branch, bound int) (out []selection, pairs, tried int) {
	all := branches
	branches = branches[:min(len(branches), maxPaired)]
	c := newCover(branches)
	pairs = c.open
	if combinations(all, bound) <= bound {
		return allOf(all), pairs, pairs
	}
	first := make(selection, len(branches))
	c.tick(first)
	out = append(out, first)
	for c.open > 0 && len(out) < bound {
		s := c.next()
		c.tick(s)
		out = append(out, s)
	}
	for i, s := range out {
		for j := len(branches); j < len(all); j++ {
			s = append(s, i%len(all[j].choices))
		}
		out[i] = s
	}
	return out, pairs, pairs - c.open
}

// combinations returns the number of all combinations, or a number beyond the limit.
func combinations(branches []*branch, limit int) int {
	out := 1
	for _, b := range branches {
		if out *= len(b.choices); out > limit {
			return limit + 1
		}
	}
	return out
}

// allOf returns all combinations.
func allOf(branches []*branch) []selection {
	out := []selection{make(selection, len(branches))}
	for i, b := range branches {
		for _, s := range slices.Clone(out) {
			for choice := 1; choice < len(b.choices); choice++ {
				more := slices.Clone(s)
				more[i] = choice
				out = append(out, more)
			}
		}
	}
	return out
}

// A pair is a choice for each of two branches, of which the first has the lower number.
type pair struct{ branch, choice, otherBranch, otherChoice int }

// A cover knows which pairs of choices no selection has had yet.
type cover struct {
	branches []*branch
	// order are all pairs; those before at are ticked.
	order  []pair
	at     int
	ticked map[pair]bool
	open   int
}

func newCover(branches []*branch) *cover {
	c := &cover{branches: branches, ticked: map[pair]bool{}}
	for i, a := range branches {
		for j := i + 1; j < len(branches); j++ {
			for x := range a.choices {
				for y := range branches[j].choices {
					c.order = append(c.order, pair{i, x, j, y})
				}
			}
		}
	}
	c.open = len(c.order)
	return c
}

// tick notes the pairs of a selection.
func (c *cover) tick(s selection) {
	for i := range s {
		for j := i + 1; j < len(s); j++ {
			if p := (pair{i, s[i], j, s[j]}); !c.ticked[p] {
				c.ticked[p] = true
				c.open--
			}
		}
	}
}

// next returns a selection with the first open pair and with as many others as the next branch can add, one
// branch after the other.
func (c *cover) next() selection {
	for c.ticked[c.order[c.at]] {
		c.at++
	}
	seed := c.order[c.at]
	out := make(selection, len(c.branches))
	decided := map[int]bool{seed.branch: true, seed.otherBranch: true}
	out[seed.branch], out[seed.otherBranch] = seed.choice, seed.otherChoice
	for i, b := range c.branches {
		if decided[i] {
			continue
		}
		best := -1
		for choice := range b.choices {
			if n := c.gain(out, decided, i, choice); n > best {
				best, out[i] = n, choice
			}
		}
		decided[i] = true
	}
	return out
}

// gain returns how many open pairs a choice makes with the branches that are decided.
func (c *cover) gain(s selection, decided map[int]bool, i, choice int) int {
	n := 0
	for j := range decided {
		p := pair{i, choice, j, s[j]}
		if j < i {
			p = pair{j, s[j], i, choice}
		}
		if !c.ticked[p] {
			n++
		}
	}
	return n
}
