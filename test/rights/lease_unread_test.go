package rights

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// Of two processes that may not read their Lease any more, the leader goes on: it renews what it knows. The other one says what it lacks,
// does not lead when the leader is killed, as it cannot see that, and does so once the permission is back.
func TestF37AProcessThatMayNotReadTheLeaseSaysSoAndLeadsOnceItMay(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "unreadlease", editedBody)
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	rules := append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"))
	whole := append(append([]any{}, rules...), leases("get", "create", "update"))
	role := s.RestrictOperator(whole...)
	args := []string{p.Dir, "--crds=leave", harness.Alone, "--leader-elect", "--leader-elect-namespace", s.Namespace, "--leader-election-id", "unread"}
	leader := s.StartOperator(args...)
	leader.ExpectLog("Successfully acquired lease")
	standby := s.StartOperator(args...)
	standby.ExpectLog("running")
	cr := s.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)

	s.Patch(role, map[string]any{"rules": append(append([]any{}, rules...), leases("create", "update"))})
	took := harness.Within(t, namedWithin, "the permission to be named", func() error {
		for line := range harness.Lines(standby.Log.From(0), "cannot get resource") {
			if harness.ContainsAll(line, []string{"leases", s.User}) {
				return nil
			}
		}
		return harness.ErrNotYet
	})
	t.Logf("named after %s", took.Round(time.Millisecond))
	began := time.Now()
	harness.Eventually(t, "the Lease to be renewed although nobody may read it", func() error {
		lease := s.ExpectObject(harness.Object("coordination.k8s.io/v1", "Lease", s.Namespace, "unread"), "to exist", harness.Exists)
		if renewedAt(t, lease).Before(began.Add(leaseTime)) {
			return harness.ErrNotYet
		}
		return nil
	})
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("edited-shop", "text", "b")

	leader.Kill()
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	killed := time.Now()
	harness.Eventually(t, "the Lease to expire", func() error {
		if time.Since(killed) < leadsWithin {
			return harness.ErrNotYet
		}
		return nil
	})
	if strings.Contains(standby.Log.From(0), "Successfully acquired lease") {
		t.Error("a process leads that may not read the Lease")
	}
	s.Patch(role, map[string]any{"rules": whole})
	// It sees now for the first time what the Lease has become meanwhile, and respects that for its duration.
	took = harness.Within(t, leaseTime+recoveredWithin, "the resource to be reconciled", func() error {
		u, err := harness.GetOrNil(t.Context(), harness.Object("v1", "ConfigMap", s.Namespace, "edited-shop"))
		if err != nil {
			return err
		}
		if text, _, _ := unstructured.NestedString(u.Object, "data", "text"); text != "c" {
			return harness.ErrNotYet
		}
		return nil
	})
	t.Logf("reconciled %s after the return of the permission", took.Round(time.Millisecond))
}

// renewedAt returns when a Lease was renewed last.
func renewedAt(t *testing.T, lease *unstructured.Unstructured) time.Time {
	t.Helper()
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	out, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
