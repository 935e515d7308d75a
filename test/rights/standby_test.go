package rights

import (
	"testing"
	"time"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// standsByFor is how long a process that stands by is watched.
const standsByFor = 8 * time.Second

func TestAProcessThatStandsByWritesNothingUntilItLeads(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "standing", limitedBody)
	args := []string{p.Dir, "--leader-elect", "--leader-elect-namespace", s.Namespace, "--leader-election-id", "standing"}
	s.Create(harness.Object("v1", "Secret", s.Namespace, "token"))
	first := s.StartOperator(args...)
	first.ExpectLog("Successfully acquired lease", s.Namespace+"/standing")
	leader := s.User

	s.User = leader + "-standby"
	var err error
	if s.Kubeconfig, err = harness.Suite.ControlPlane.KubeconfigFor(s.User, "system:masters"); err != nil {
		t.Fatal(err)
	}
	from := harness.MarkAudit(t)
	second := s.StartOperator(args...)
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

	first.Kill()
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("settings-shop", "text", "b")
	definitions := s.OperatorRequests(from).Writes().Filter(func(e controlplane.AuditEvent) bool { return e.Resource == "customresourcedefinitions" })
	if len(definitions) == 0 {
		t.Error("the process that came to lead did not install its definitions")
	}
}
