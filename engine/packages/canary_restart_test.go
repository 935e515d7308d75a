package packages

import (
	"testing"
	"time"
)

func TestTheDeadlineOfACanaryDoesNotRunWhileNobodyDecides(t *testing.T) {
	t.Parallel()
	names := byHash(5)
	first, second := names[0], names[1]
	apply := func(spec map[string]any) func(*site) { return func(s *site) { s.apply("p", spec) } }
	later := func(d time.Duration) func(*site) { return func(s *site) { s.now = s.now.Add(d) } }
	begin := turn{apply(canaried(text("Thing", "a"))), "True Served", []string{"install", "serve Thing"}}
	create := turn{func(s *site) {
		for _, name := range names {
			s.resources = append(s.resources, resource(name, "", waiting))
		}
		s.reconciled()
	}, "True Served", nil}
	try := turn{apply(canaried(text("Thing", "b"))), "False CanaryProgressing", []string{"install", "canary " + first + " " + second}}
	outage := turn{func(s *site) { s.now = s.now.Add(time.Hour); s.restart() }, "False CanaryProgressing", []string{"install", "serve Thing outdated: ", "canary " + first + " " + second}}
	for name, row := range map[string]struct {
		reason string
		turns  []turn
	}{
		"resources that the outage alone has kept from being ready": {"what they say is from before the outage", []turn{
			begin, create, try,
			{pass(time.Second, waiting), "False CanaryProgressing", nil},
			outage,
			{pass(time.Second), "False CanaryReady", []string{"canary " + first + " " + second}},
			{pass(time.Minute), "True Served", []string{"install", "swap Thing"}},
		}},
		"resources that do not become ready": {"the deadline begins anew, and ends the canary", []turn{
			begin, create, try,
			{pass(time.Second, waiting), "False CanaryProgressing", nil},
			outage,
			{pass(time.Second, waiting), "False CanaryProgressing", []string{"canary " + first + " " + second}},
			{pass(9*time.Minute, waiting), "False CanaryProgressing", nil},
			{pass(time.Minute, waiting), "False CanaryRolledBack", []string{"canary ends", "install"}},
		}},
		"resources that fail": {"they say so in any case", []turn{
			begin, create, try,
			{pass(time.Second, waiting), "False CanaryProgressing", nil},
			outage,
			{pass(time.Second, failing), "False CanaryRolledBack", []string{"canary ends", "install"}},
		}},
		"resources that nothing reconciles": {"the canary ends without them, too", []turn{
			begin, create, try,
			{pass(time.Second, waiting), "False CanaryProgressing", nil},
			outage,
			{later(time.Second), "False CanaryProgressing", []string{"canary " + first + " " + second}},
			{later(9 * time.Minute), "False CanaryProgressing", nil},
			{later(time.Minute), "False CanaryRolledBack", []string{"canary ends", "install"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSite(t).play(row.reason, row.turns)
		})
	}
}
