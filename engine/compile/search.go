package compile

import (
	"maps"
	"slices"

	"operetta.dev/engine/template"
)

const (
	// maxSearch is how many attempts there are for one session.
	maxSearch = 24
	// maxHoles is how many values there may be that are not pinned. The work for a template grows
	// with the square of it.
	maxHoles = 1000
)

// A pinSearch looks for pins with which a session can be translated.
type pinSearch struct {
	unit    *unit
	left    int
	reasons []Reason
}

// search returns a template and the pins that it needs, and the reasons for pins that were added. The
// template is nil if there is none.
func (u *unit) search(pins template.Pins) (*Template, template.Pins, []Reason) {
	s := &pinSearch{unit: u, left: maxSearch}
	given := pins
	if n := len(leavesOf(u.view, pins)); n > maxHoles {
		return nil, pins, []Reason{untranslatedf("", "it has %d values, and %d are the limit", n, maxHoles).Reason}
	}
	if err := u.prepare(); err != nil {
		return nil, given, []Reason{asUntranslated(err).Reason}
	}
	pins = with(pins, slices.DeleteFunc(leavesOf(u.view, pins), func(path []string) bool { return !u.reads.has(path) }))
	for s.left > 0 {
		t, err := s.attempt(pins)
		if err == nil {
			return t, withConditions(pins, t.conditions), s.reasons
		}
		s.reasons = append(s.reasons, err.Reason)
		more := false
		for _, path := range err.paths {
			var added bool
			pins, added = pins.With(path...)
			more = more || added
		}
		if more {
			continue
		}
		leaves := leavesOf(u.view, pins)
		if len(leaves) == 0 {
			break
		}
		if t, _ := s.attempt(with(pins, leaves)); t == nil {
			break
		}
		pins = with(pins, s.smallest(pins, leaves))
	}
	return nil, given, s.reasons
}

func (s *pinSearch) attempt(pins template.Pins) (*Template, *untranslated) {
	s.left--
	t, err := s.unit.attempt(pins)
	if err != nil {
		return nil, asUntranslated(err)
	}
	return t, nil
}

// smallest returns few of the leaves that have to be pinned. All of them are enough.
func (s *pinSearch) smallest(pins template.Pins, leaves [][]string) [][]string {
	if len(leaves) < 2 || s.left <= 0 {
		return leaves
	}
	left, right := leaves[:len(leaves)/2], leaves[len(leaves)/2:]
	if t, _ := s.attempt(with(pins, left)); t != nil {
		return s.smallest(pins, left)
	}
	if t, _ := s.attempt(with(pins, right)); t != nil {
		return s.smallest(pins, right)
	}
	some := s.smallest(with(pins, right), left)
	return append(some, s.smallest(with(pins, some), right)...)
}

// with returns pins with more paths.
func with(pins template.Pins, paths [][]string) template.Pins {
	for _, path := range paths {
		pins, _ = pins.With(path...)
	}
	return pins
}

// withConditions returns pins with more conditions. One that cannot be written is left out: sessions that
// differ in it share a shape, and its guard sends some of them to CUE.
func withConditions(pins template.Pins, conditions []*template.Node) template.Pins {
	for _, c := range conditions {
		if out, _, err := pins.WithCondition(c); err == nil {
			pins = out
		}
	}
	return pins
}

// leavesOf returns the paths of the scalars of a view that are not pinned.
func leavesOf(view map[string]any, pins template.Pins) [][]string {
	h := newHoles()
	for _, root := range filled {
		h.syntax(view[root], view[root], pins.Below(root), []string{root})
	}
	return leavesIn(h)
}

// leavesIn returns the paths of holes, sorted. There are no more of them after that.
func leavesIn(h *holes) [][]string {
	if h.sorted == nil {
		h.sorted = slices.SortedFunc(maps.Values(h.paths), slices.Compare)
	}
	return h.sorted
}
