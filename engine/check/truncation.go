package check

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"operetta.dev/engine/program/syntax"
)

// A Truncation says that there is too much of something for all of it to be tried.
type Truncation struct {
	// Path is the field that has too much, such as spec.mode, and Unit what it has too much of, such as values.
	Path  string `json:"path"`
	Unit  string `json:"unit"`
	Tried int    `json:"tried"`
	Of    int    `json:"of"`
}

// String returns the part in one line.
func (p Truncation) String() string {
	return fmt.Sprintf("%s: %s of %s %s tried", p.Path, syntax.Thousands(p.Tried), syntax.Thousands(p.Of), p.Unit)
}

// enumeration returns the choices of an enumeration. Of one with more values than there may be cases, they are the first
// and the last value, those that the package compares it with, and some between: half as many as there may be cases.
func (s *splitter) enumeration(schema *apiextensionsv1.JSONSchemaProps, path string) []choice {
	var out []choice
	for _, raw := range schema.Enum {
		if value, ok := decoded(raw); ok && value != nil {
			out = append(out, listed(value))
		}
	}
	if all := len(out); all > s.bound {
		out = sampled(out, s.compared[path], max(s.bound/2, minSampled))
		s.part(Truncation{Path: path, Unit: "values", Tried: len(out), Of: all})
	}
	return withoutDefault(schema, out)
}

// minSampled is how many values of an enumeration are tried at least, however few cases there may be.
const minSampled = 8

// sampled returns some of the choices of an enumeration, in their order.
func sampled(all []choice, named []any, most int) []choice {
	taken := map[int]bool{0: true, len(all) - 1: true}
	for _, value := range named {
		label := constant(value).label
		if at := slices.IndexFunc(all, func(c choice) bool { return c.label == label }); at >= 0 && len(taken) < most {
			taken[at] = true
		}
	}
	for i, more := 1, most-len(taken); i <= more; i++ {
		taken[i*(len(all)-1)/(more+1)] = true
	}
	var out []choice
	for i, c := range all {
		if taken[i] {
			out = append(out, c)
		}
	}
	return out
}

// part notes that not all of something is tried, once for each field.
func (s *splitter) part(p Truncation) {
	if !slices.ContainsFunc(s.parts, func(known Truncation) bool { return known.Path == p.Path }) {
		s.parts = append(s.parts, p)
	}
}

// manyBranches is beyond how many branches they are made simple together first, and not only one by one.
const manyBranches = 64

// simplified returns a selection with the simplest choices for whole parts of its branches, as long as it holds: one after
// the other, ten thousand branches would take hours. Of few branches it simplifies none.
func simplified(from selection, holds func(selection) (bool, error)) (selection, error) {
	s := slices.Clone(from)
	if len(s) <= manyBranches {
		return s, nil
	}
	for size := len(s); size > 0; size /= 2 {
		for at := 0; at < len(s); at += size {
			part := s[at:min(at+size, len(s))]
			if !slices.ContainsFunc(part, func(choice int) bool { return choice > 0 }) {
				continue
			}
			simpler := slices.Clone(s)
			clear(simpler[at : at+len(part)])
			switch is, err := holds(simpler); {
			case err != nil:
				return s, err
			case is:
				s = simpler
			}
		}
	}
	return s, nil
}
