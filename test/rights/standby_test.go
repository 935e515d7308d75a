package rights

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// leadsWithin is how long after the death of a leader another process acts: the duration of a Lease and 2 seconds.
const leadsWithin = 17 * time.Second

// standsByFor is how long a process that stands by is watched.
const standsByFor = 8 * time.Second

func TestW44W45W46AProcessThatStandsByWritesNothingUntilItLeads(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "standing", limitedBody)
	args := []string{p.Dir, "--leader-elect", "--leader-elect-namespace", s.Namespace, "--leader-election-id", "standing"}
	s.Create(harness.Object("v1", "Secret", s.Namespace, "token"))
	first := s.StartOperator(args...)
	first.ExpectLog("Successfully acquired lease", s.Namespace+"/standing")

	standBy(t, s)
	from := harness.MarkAudit(t)
	// The definitions of both are not the same, or the second would have none to install.
	newer := harness.NewTestPackage(t, "standing", strings.Replace(limitedBody, "#Spec: {", "#Spec: {added?: string, ", 1))
	second := s.StartOperator(append([]string{newer.Dir}, args[1:]...)...)
	second.ExpectLog("running")
	cr := s.Create(p.Thing(s, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	began := time.Now()
	harness.Eventually(t, "some time to pass", func() error {
		if time.Since(began) < standsByFor {
			return harness.ErrNotYet
		}
		return nil
	})
	if wrote := s.OperatorRequests(from).Mutating(); len(wrote) > 0 {
		t.Errorf("the process that stands by wrote: %s", wrote)
	}
	if warm := s.OperatorRequests(from).OfResource("things"); len(warm.WithVerbs("watch")) == 0 {
		t.Errorf("the process that stands by does not watch what it is to reconcile: %s", warm)
	}

	first.Kill()
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	took := harness.Within(t, leadsWithin, "the other process to act", func() error {
		u, err := s.Lookup("ConfigMap", "settings-shop")
		if err != nil || u == nil || harness.Field(u, "data", "text") != "b" {
			return harness.ErrNotYet
		}
		return nil
	})
	t.Logf("the other process acts %s after the first was killed", took.Round(time.Millisecond))
	second.ExpectLog("Successfully acquired lease", s.Namespace+"/standing")
	definitions := s.OperatorRequests(from).Writes().Filter(func(e controlplane.AuditEvent) bool { return e.Resource == "customresourcedefinitions" })
	if len(definitions) == 0 {
		t.Error("the process that came to lead did not install its definitions")
	}
}

// standBy gives the next operator of a test a user of its own, by whom the audit log tells it from the first.
func standBy(t *testing.T, s *harness.Env) {
	t.Helper()
	*s = *s.As("standby")
}

// TestW46ALeaderThatWasStoppedForLongerThanItsLeaseWritesNothingMore stops a leader while it creates many objects, so that it
// continues in the middle of that when another process leads.
func TestW46ALeaderThatWasStoppedForLongerThanItsLeaseWritesNothingMore(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "stopped", limitedBody)
	args := []string{p.Dir, "--leader-elect", "--leader-elect-namespace", s.Namespace, "--leader-election-id", "stopped"}
	s.Create(harness.Object("v1", "Secret", s.Namespace, "token"))
	first := s.StartOperator(args...)
	first.ExpectLog("Successfully acquired lease", s.Namespace+"/stopped")
	leader := s.User
	standBy(t, s)
	second := s.StartOperator(args...)

	const things = 30
	for i := range things {
		s.Create(p.Thing(s, fmt.Sprintf("shop-%d", i), map[string]any{}))
	}
	if err := syscall.Kill(first.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second.ExpectLog("Successfully acquired lease", s.Namespace+"/stopped")
	from := harness.MarkAudit(t)
	if err := syscall.Kill(first.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the stopped leader to end", func() error {
		select {
		case <-first.Ended:
			return nil
		default:
			return errors.New("it runs")
		}
	})
	wrote := s.RequestsOf(from, leader).Writes().Filter(func(e controlplane.AuditEvent) bool { return e.Resource != "leases" })
	if len(wrote) > 0 {
		t.Errorf("the leader that was stopped wrote after another led: %s", wrote)
	}
	for i := range things {
		s.ExpectData(fmt.Sprintf("settings-shop-%d", i), "text", "a")
	}
}
