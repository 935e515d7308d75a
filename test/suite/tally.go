package main

import "fmt"

// A tally counts tests; subtests count like tests.
type tally struct{ passed, failed, skipped int }

func (t tally) plus(o tally) tally {
	return tally{t.passed + o.passed, t.failed + o.failed, t.skipped + o.skipped}
}

// String is the closing line, which other programs read.
func (t tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}
