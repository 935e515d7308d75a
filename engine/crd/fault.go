package crd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/token"
)

// Fault is one reason why a definition cannot become a CRD.
type Fault struct {
	// Path is the path of the field in CUE's notation: versions.v1.spec.replicas. List
	// elements are [_], the values of a map [string].
	Path string
	// Pos is the position in the source. It is not valid if the fault is not in CUE.
	Pos token.Pos
	// Others are further paths with the same fault at the same position: a definition is
	// often used more than once.
	Others []string
	// Problem says what is wrong, and Hint what to write instead. Hint may be empty.
	Problem, Hint string
}

// Error prints the fault as "path (file:line): problem; hint".
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.Path)
	if p := f.Pos.Position(); f.Pos.IsValid() && p.IsValid() {
		fmt.Fprintf(&b, " (%s:%d)", p.Filename, p.Line)
	}
	b.WriteString(": " + f.Problem)
	if n := len(f.Others); n == 1 {
		b.WriteString(" (as at " + f.Others[0] + ")")
	} else if n > 1 {
		fmt.Fprintf(&b, " (as at %s and %d more paths)", f.Others[0], n-1)
	}
	if f.Hint != "" {
		b.WriteString("; " + f.Hint)
	}
	return b.String()
}

// Error holds all faults of a definition, sorted by position. It is never empty.
type Error struct {
	Faults []Fault
}

// Error prints one fault per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults, for errors.As.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Faults))
	for i, f := range e.Faults {
		errs[i] = f
	}
	return errs
}

// newError sorts faults by position, and merges those with the same position and problem. It
// returns nil if there are no faults.
func newError(faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		p, q := a.Pos.Position(), b.Pos.Position()
		return cmp.Or(cmp.Compare(p.Filename, q.Filename), cmp.Compare(p.Offset, q.Offset), cmp.Compare(a.Problem, b.Problem))
	})
	var merged []Fault
	for _, f := range faults {
		last := len(merged) - 1
		switch {
		case last < 0 || !f.Pos.IsValid() || merged[last].Pos != f.Pos || merged[last].Problem != f.Problem:
			merged = append(merged, f)
		case merged[last].Path != f.Path:
			merged[last].Others = append(merged[last].Others, f.Path)
		}
	}
	return &Error{Faults: merged}
}
