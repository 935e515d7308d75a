package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// A selection is the choice for each branch, by number. Choice 0 is the simplest one.
type selection []int

// maxPaired is how many branches are tried in pairs at most; the choices of any others take turns. The number of pairs
// grows with the square, and 120 branches have some 60,000.
const maxPaired = 120

// maxPairs is how many pairs there are at most: branches with many choices have as many with a few others.
const maxPairs = 200_000

// cases returns the selections to try, the simplest first: all combinations if there are no more than the bound,
// and otherwise so many that each choice, and each pair of choices of two branches, is in one of them, up to the
// bound. A choice is in a case only if the structs, lists and maps around it are written.
func cases(c *cover, bound int) []selection {
	if combinations(c.branches, bound) <= bound {
		return c.distinct(allOf(c.branches))
	}
	first := make(selection, len(c.branches))
	c.markCovered(first)
	out := []selection{first}
	if usual := c.usual(); len(out) < bound && !slices.Equal(usual, first) {
		c.markCovered(usual)
		out = append(out, usual)
	}
	for len(out) < bound {
		s := c.next(len(out))
		if s == nil {
			break
		}
		c.markCovered(s)
		out = append(out, s)
	}
	return out
}

// usual returns the selection with the usual choices.
func (c *cover) usual() selection {
	var out selection
	for _, b := range c.branches {
		out = append(out, b.usual)
	}
	return out
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

// needs are the choices of other branches with which a branch is written, by number.
type needs map[int]int

// join returns what is needed for both, or false if there is no such case.
func (n needs) join(other needs) (needs, bool) {
	out := maps.Clone(n)
	for i, choice := range other {
		if was, ok := out[i]; ok && was != choice {
			return nil, false
		}
		out[i] = choice
	}
	return out, true
}

// placesOf returns with which choices each branch is written, by number: one for each place where it stands.
func (m *maker) placesOf() [][]needs {
	out := make([][]needs, len(m.branches))
	var walk func(n *node, at needs)
	walk = func(n *node, at needs) {
		number, branches := 0, n.branch != nil
		if branches {
			number = m.numbers[n.branch]
			if slices.ContainsFunc(out[number], func(known needs) bool { return maps.Equal(known, at) }) {
				return // another element of the same list
			}
			out[number] = append(out[number], at)
		}
		for i, c := range n.choices {
			below := at
			if branches {
				below = maps.Clone(at)
				below[number] = i
			}
			for _, f := range c.fields {
				walk(f.node, below)
			}
			for _, e := range c.elements {
				walk(e, below)
			}
			for _, e := range c.entries {
				walk(e.node, below)
			}
		}
	}
	walk(m.spec, needs{})
	for _, name := range slices.Sorted(maps.Keys(m.inputs)) {
		walk(m.inputs[name], needs{})
	}
	return out
}

// A pair is a choice for each of two branches, of which the first has the lower number, or twice the same choice.
type pair struct{ branch, choice, otherBranch, otherChoice int }

func pairOf(i, choice, j, other int) pair {
	if j < i {
		return pair{j, other, i, choice}
	}
	return pair{i, choice, j, other}
}

// A cover knows which choices, and which pairs of them, no selection has had yet.
type cover struct {
	branches []*branch
	places   [][]needs
	// inPairs is how many branches are tried in pairs.
	inPairs int
	// depths is the order in which choices are made: those around a branch come before it.
	depths []int
	// order are all choices and then all pairs that a resource can have, with what they need.
	order                          []seed
	at                             int
	ticked                         map[pair]bool
	choices, chosen, pairs, paired int
}

// A seed is a pair with the choices around it.
type seed struct {
	pair
	needs
}

func newCover(branches []*branch, places [][]needs) *cover {
	c := &cover{branches: branches, places: places, ticked: map[pair]bool{}}
	deep := make([]int, len(branches))
	for i, b := range branches {
		c.depths = append(c.depths, i)
		for _, p := range places[i] {
			deep[i] = max(deep[i], len(p))
		}
		for x := range b.choices {
			c.seed(pair{i, x, i, x})
		}
	}
	slices.SortStableFunc(c.depths, func(a, b int) int { return cmp.Compare(deep[a], deep[b]) })
	c.choices = len(c.order)
	c.inPairs = pairable(branches)
	for i, a := range branches[:c.inPairs] {
		for j := i + 1; j < c.inPairs; j++ {
			for x := range a.choices {
				for y := range branches[j].choices {
					c.seed(pair{i, x, j, y})
				}
			}
		}
	}
	c.pairs = len(c.order) - c.choices
	return c
}

// pairable returns how many branches, from the first on, are tried in pairs.
func pairable(branches []*branch) int {
	choices, pairs := 0, 0
	for i, b := range branches[:min(len(branches), maxPaired)] {
		if pairs += choices * len(b.choices); pairs > maxPairs {
			return i
		}
		choices += len(b.choices)
	}
	return min(len(branches), maxPaired)
}

// seed adds a pair, if a resource can have it.
func (c *cover) seed(p pair) {
	own := needs{p.branch: p.choice, p.otherBranch: p.otherChoice}
	for _, a := range c.places[p.branch] {
		for _, b := range c.places[p.otherBranch] {
			both, ok := a.join(b)
			if ok {
				both, ok = both.join(own)
			}
			if ok {
				c.order = append(c.order, seed{p, both})
				return
			}
		}
	}
}

// uses reports whether a branch is written with the choices of some branches.
func (c *cover) uses(i int, chosen func(branch int) (choice int, ok bool)) bool {
	return slices.ContainsFunc(c.places[i], func(n needs) bool {
		for branch, choice := range n {
			if got, ok := chosen(branch); !ok || got != choice {
				return false
			}
		}
		return true
	})
}

// used returns the branches that a selection writes.
func (c *cover) used(s selection) []int {
	var out []int
	for i := range s {
		if c.uses(i, func(j int) (int, bool) { return s[j], true }) {
			out = append(out, i)
		}
	}
	return out
}

// distinct returns the selections without those that make the same resource as one before.
func (c *cover) distinct(all []selection) []selection {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(s selection) bool {
		same := make(selection, len(s))
		for _, i := range c.used(s) {
			same[i] = s[i]
		}
		key := fmt.Sprint(same)
		was := seen[key]
		seen[key] = true
		return was
	})
}

// markCovered notes the choices and the pairs of a selection.
func (c *cover) markCovered(s selection) {
	used := c.used(s)
	for at, i := range used {
		for _, j := range used[at:] {
			if j != i && j >= c.inPairs {
				break // they are in order
			}
			p := pair{i, s[i], j, s[j]}
			if c.ticked[p] {
				continue
			}
			c.ticked[p] = true
			if j == i {
				c.chosen++
			} else {
				c.paired++
			}
		}
	}
}

// next returns the selection of a number, with the first seed that is open and with as much else that is open as the
// next branch can add, one branch after the other. It returns nil if nothing is open.
func (c *cover) next(number int) selection {
	for c.at < len(c.order) && c.ticked[c.order[c.at].pair] {
		c.at++
	}
	if c.at == len(c.order) {
		return nil
	}
	out := make(selection, len(c.branches))
	decided := maps.Clone(c.order[c.at].needs)
	for i, choice := range decided {
		out[i] = choice
	}
	for _, i := range c.depths {
		if _, ok := decided[i]; ok || !c.uses(i, func(j int) (int, bool) { choice, ok := decided[j]; return choice, ok }) {
			continue
		}
		if i >= c.inPairs {
			out[i] = number % len(c.branches[i].choices)
		} else {
			out[i] = c.branches[i].usual
		}
		best := c.gain(decided, i, out[i])
		for choice := range c.branches[i].choices {
			if n := c.gain(decided, i, choice); n > best {
				best, out[i] = n, choice
			}
		}
		decided[i] = out[i]
	}
	return out
}

// gain returns how many open choices and pairs a choice makes with the branches that are decided.
func (c *cover) gain(decided needs, i, choice int) int {
	n := 0
	if i >= c.inPairs {
		if !c.ticked[pair{i, choice, i, choice}] {
			n++
		}
		return n
	}
	for j, other := range decided {
		if j < c.inPairs && !c.ticked[pairOf(i, choice, j, other)] {
			n++
		}
	}
	return n
}
