package packages

import (
	"slices"
	"testing"
	"time"
)

// What is loaded says whether a content is good, so a canary does not wait for its source.
func TestACanaryIsJudgedWhileItsSourceCannotBeRead(t *testing.T) {
	t.Parallel()
	names := byHash(5)
	unread := []string{"outdated: SourceNotFound" + sayswhy}
	begin := []turn{
		{fromMap("a"), "True Served", []string{"install", "serve Thing"}},
		{func(s *site) {
			for _, name := range names {
				s.resources = append(s.resources, resource(name, "", waiting))
			}
			s.reconciled()
		}, "True Served", nil},
		{fromMap("b"), "False CanaryProgressing", []string{"install", "canary " + names[0] + " " + names[1]}},
	}
	for name, row := range map[string]struct {
		reason string
		turns  []turn
	}{
		"a good one whose source cannot be read": {"it is loaded, so the others follow once it has been ready for its time", []turn{
			{pass(time.Second), "False CanaryReady", nil},
			{func(s *site) { delete(s.maps, "ns/source"); s.reconciled() }, "False SourceNotFound", unread},
			{pass(30 * time.Second), "False SourceNotFound", nil},
			{pass(30 * time.Second), "False SourceNotFound", []string{"install", "swap Thing", "outdated: SourceNotFound" + sayswhy}},
			{pass(time.Minute), "False SourceNotFound", nil},
			{fromMap("b"), "True Served", []string{"outdated: "}},
		}},
		"a bad one whose source cannot be read": {"it goes back at once, and stays away", []turn{
			{func(s *site) { delete(s.maps, "ns/source"); s.reconciled() }, "False SourceNotFound", unread},
			{pass(time.Second, failing), "False SourceNotFound", []string{"canary ends", "install"}},
			{pass(time.Hour), "False SourceNotFound", nil},
			{fromMap("b"), "False CanaryRolledBack", []string{"outdated: "}},
		}},
		"one that does not become ready, and its source cannot be read": {"it goes back at the deadline", []turn{
			{func(s *site) { delete(s.maps, "ns/source"); s.reconciled(waiting); s.now = s.now.Add(9 * time.Minute) }, "False SourceNotFound", unread},
			{pass(time.Minute, waiting), "False SourceNotFound", []string{"canary ends", "install"}},
		}},
		"a good one, and another source cannot be read": {"nobody wants it for all resources, but it may go back", []turn{
			{pass(time.Second), "False CanaryReady", nil},
			{func(s *site) {
				s.reconciled()
				s.apply("p", canaried(inMap("other")))
			}, "False SourceNotFound", unread},
			{pass(time.Hour), "False SourceNotFound", nil},
			{pass(time.Second, failing), "False SourceNotFound", []string{"canary ends", "install"}},
		}},
		"a good one without approval whose source cannot be read": {"it is not taken over, but it may go back", []turn{
			{pass(time.Second), "False CanaryReady", nil},
			{func(s *site) {
				delete(s.maps, "ns/source")
				s.reconciled()
				s.apply("p", canaried(inMap("source"), map[string]any{"update": "Manual"}))
			}, "False SourceNotFound", unread},
			{pass(time.Hour), "False SourceNotFound", nil},
			{pass(time.Second, failing), "False SourceNotFound", []string{"canary ends", "install"}},
		}},
		"a pause in which the source cannot be read": {"nothing is taken over", []turn{
			{pass(time.Second), "False CanaryReady", nil},
			{func(s *site) {
				delete(s.maps, "ns/source")
				s.reconciled()
				s.apply("p", canaried(inMap("source"), map[string]any{"paused": true}))
			}, "False SourceNotFound", unread},
			{pass(time.Hour), "False SourceNotFound", nil},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSite(t).play(row.reason, append(slices.Clone(begin), row.turns...))
		})
	}
}
