package redact

import (
	"slices"
	"strings"
	"sync"
)

// patterns are the texts to redact. Whoever writes a Secret decides how many there are, and texts are redacted in each
// reconcile of each resource that reads it: so a text is not searched for each of them, but each of its places is looked up
// among all of them.
type patterns struct {
	// words are redacted as they are: those that are too short to be looked for within words. The value says that they are redacted
	// within words all the same.
	words map[string]bool
	// long are the others in lower case, in order. shorter has for each the index of the longest other one that it begins with, or -1,
	// and starts the indexes of those that begin with the same minSubstringLength bytes.
	long    []string
	shorter []int
	starts  map[string]span
	// truncated returns the long ones as they are, in order, and backwards. Few texts are truncated.
	truncated func() (exact, reversed []string)
}

// A span is a range of indexes, without the last.
type span struct{ from, end int }

// newPatterns returns the patterns of some texts, each of at least minLength bytes. If anywhere is true, all are redacted also within words.
func newPatterns(texts map[string]bool, anywhere bool) *patterns {
	var exact []string
	p := &patterns{words: map[string]bool{}, starts: map[string]span{}}
	for text := range texts {
		if len(text) < minSubstringLength {
			p.words[text] = anywhere
			continue
		}
		p.long = append(p.long, lowerASCII(text))
		exact = append(exact, text)
	}
	p.truncated = sync.OnceValues(func() (_, reversed []string) {
		for _, text := range exact {
			reversed = append(reversed, backwards(text))
		}
		slices.Sort(exact)
		slices.Sort(reversed)
		return exact, reversed
	})
	slices.Sort(p.long)
	p.shorter = make([]int, len(p.long))
	var open []int // each begins with the one before
	for i, text := range p.long {
		for len(open) > 0 && !strings.HasPrefix(text, p.long[open[len(open)-1]]) {
			open = open[:len(open)-1]
		}
		p.shorter[i] = -1
		if len(open) > 0 {
			p.shorter[i] = open[len(open)-1]
		}
		open = append(open, i)
		start := text[:minSubstringLength]
		same, known := p.starts[start]
		if !known {
			same.from = i
		}
		same.end = i + 1
		p.starts[start] = same
	}
	return p
}

func (p *patterns) empty() bool { return len(p.words)+len(p.long) == 0 }

// redact returns a text without the patterns.
func (p *patterns) redact(text string) string {
	if p.empty() {
		return text
	}
	hidden := p.findLong(lowerASCII(text))
	hidden = joined(append(hidden, p.findTruncated(text)...))
	hidden = joined(append(hidden, p.findWords(text, hidden)...))
	if len(hidden) == 0 {
		return text
	}
	var b strings.Builder
	from := 0
	for _, part := range hidden {
		b.WriteString(text[from:part.from] + Mask)
		from = part.end
	}
	return b.String() + text[from:]
}

// A part is a part of a text.
type part struct{ from, end int }

// joined returns parts in order, with those that overlap as one.
func joined(all []part) []part {
	slices.SortFunc(all, func(a, b part) int { return a.from - b.from })
	var out []part
	for _, next := range all {
		if last := len(out) - 1; last >= 0 && next.from < out[last].end {
			out[last].end = max(out[last].end, next.end)
			continue
		}
		out = append(out, next)
	}
	return out
}

// findLong returns where the long patterns are in a text in lower case.
func (p *patterns) findLong(text string) []part {
	var out []part
	for at := 0; at+minSubstringLength <= len(text) && len(p.long) > 0; at++ {
		same, known := p.starts[text[at:at+minSubstringLength]]
		if !known {
			continue
		}
		if n := p.longestAt(text[at:], same); n > 0 {
			out = append(out, part{at, at + n})
		}
	}
	return out
}

// longestAt returns the length of the longest pattern that a text begins with, or 0, given those that begin as the text. It is
// the last of these that is not behind the text, or among those that this one begins with itself.
func (p *patterns) longestAt(text string, among span) int {
	i, found := slices.BinarySearch(p.long[among.from:among.end], text)
	i += among.from
	if !found {
		i--
	}
	if i < among.from {
		return 0
	}
	if strings.HasPrefix(text, p.long[i]) {
		return len(p.long[i])
	}
	same := commonPrefix(p.long[i], text)
	for i >= 0 && len(p.long[i]) > same {
		i = p.shorter[i]
	}
	if i < 0 {
		return 0
	}
	return len(p.long[i])
}

// findWords returns where the short patterns are in a text, besides the parts that are hidden already.
func (p *patterns) findWords(text string, hidden []part) []part {
	var out []part
	isHidden := func(at int) bool {
		_, found := slices.BinarySearchFunc(hidden, at, func(of part, at int) int {
			switch {
			case of.end <= at:
				return -1
			case of.from > at:
				return 1
			}
			return 0
		})
		return found
	}
	// Nothing is left of the word that a hidden part belongs to.
	atBoundary := func(at int) bool { return isWordBoundary(text, at) || isHidden(at) }
	for from := 0; from < len(text) && len(p.words) > 0; from++ {
		for end := min(len(text), from+minSubstringLength-1); end >= from+minLength; end-- {
			anywhere, known := p.words[text[from:end]]
			if known && (anywhere || atBoundary(from-1) && atBoundary(end)) {
				out = append(out, part{from, end})
				break
			}
		}
	}
	return out
}

// ellipsis marks where a text was truncated: in its middle, by package status, or at its end.
const ellipsis = "..."

// minTruncatedLength is the minimum length of a truncated value that is recognised.
const minTruncatedLength = 6

// findTruncated returns the remains of long patterns next to each ellipsis of a text: the beginning of one before it, and the end of
// one behind it.
func (p *patterns) findTruncated(text string) []part {
	var out []part
	from := 0
	for len(p.long) > 0 {
		at := strings.Index(text[from:], ellipsis)
		if at < 0 {
			break
		}
		exact, reversed := p.truncated()
		before, next := text[from:from+at], from+at+len(ellipsis)
		behind, _, _ := strings.Cut(text[next:], ellipsis)
		body := strings.TrimRight(before, " ")
		if n := longestRemains(exact, body); n > 0 {
			out = append(out, part{from + len(body) - n, from + len(body)})
		}
		body = backwards(strings.TrimLeft(behind, " "))
		if n := longestRemains(reversed, body); n > 0 {
			start := next + len(behind) - len(body)
			out = append(out, part{start, start + n})
		}
		from = next
	}
	return out
}

// longestRemains returns the length of the longest end of a text that is the beginning of one of some sorted patterns, and not all of it.
func longestRemains(sorted []string, text string) int {
	for n := len(text); n >= minTruncatedLength; n-- {
		rest := text[len(text)-n:]
		i, found := slices.BinarySearch(sorted, rest)
		if found {
			i++
		}
		if i < len(sorted) && strings.HasPrefix(sorted[i], rest) {
			return n
		}
	}
	return 0
}

// commonPrefix returns how many bytes two texts have in common at their beginning.
func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// backwards returns the bytes of a text in reverse order.
func backwards(text string) string {
	out := []byte(text)
	slices.Reverse(out)
	return string(out)
}
