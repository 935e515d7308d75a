package machine

import "testing"

// Serial marks a test that takes seconds and does one thing after the other, so that the race detector, which makes it
// five to ten times as expensive, has nothing to find: there it is skipped. In test/stages.sh, the stage race leaves
// marked tests out, and the stage unit runs them.
func Serial(t testing.TB) {
	t.Helper()
	if detectsRaces {
		t.Skip("it does one thing after the other, so that nothing can race")
	}
}
