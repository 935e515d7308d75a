package packages

import "github.com/google/go-cmp/cmp"

// A turn is what happens to the Package p, and what comes of it.
type turn struct {
	do    func(s *site)
	ready string
	calls []string
}

// play has turns happen one after the other, and expects what comes of each.
func (s *site) play(reason string, turns []turn) {
	s.t.Helper()
	for i, turn := range turns {
		turn.do(s)
		_ = s.step("p") // an error is in the status, and tried again
		if got := s.ready("p"); got != turn.ready {
			s.t.Errorf("%s: turn %d: Ready is %s, want %s: %v", reason, i, got, turn.ready, s.get("p").Object["status"])
		}
		if diff := cmp.Diff(turn.calls, s.take()); diff != "" {
			s.t.Errorf("%s: turn %d (-want +got):\n%s", reason, i, diff)
		}
	}
}

const sayswhy = "; the status of Package p says why"
