package machine

import "testing"

// Serial marks a test that takes seconds and does one thing after the other, or at length what a shorter test of its package does with the
// race detector as well. That makes it five to ten times as expensive, and has nothing to find in it: there it is skipped. In test/stages.sh, the stage race leaves
// marked tests out, and the stage unit runs them.
func Serial(t testing.TB) {
	t.Helper()
	if detectsRaces {
		t.Skip("nothing can race in it that does not in other tests")
	}
}
