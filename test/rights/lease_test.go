package rights

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

const (
	// renewDeadline is how long a leader that cannot renew its Lease may write, and leaseTime how long others respect the Lease.
	renewDeadline = 10 * time.Second
	leaseTime     = 15 * time.Second
)

// editedBody is a package whose resources change with each edit.
const editedBody = `
#Spec: text: string | *"a"
components: web: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "edited-\(cr.metadata.name)", data: text: cr.spec.text}
`

// TestW46ALeaderThatLosesItsLeaseWritesNothingAfterTheDeadline edits a resource all the time, so that the leader always has something
// to write, while something keeps it from its Lease.
func TestW46ALeaderThatLosesItsLeaseWritesNothingAfterTheDeadline(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason string
		lose   func(s *harness.Env, role, lease *unstructured.Unstructured, rules []any)
	}{
		"refused": {"an administrator has taken the right to update Leases away", func(s *harness.Env, role, _ *unstructured.Unstructured, rules []any) {
			s.Patch(role, map[string]any{"rules": slices.Concat(rules, []any{leases("get")})})
		}},
		"taken": {"somebody has written another holder into the Lease", func(s *harness.Env, _, lease *unstructured.Unstructured, _ []any) {
			s.Patch(lease, harness.Spec(map[string]any{"holderIdentity": "somebody", "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")}))
		}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewEnv(t)
			p := harness.NewTestPackage(t, "lease"+name, editedBody)
			if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
				t.Fatal(err)
			}
			rules := append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"))
			all := slices.Concat(rules, []any{leases("get", "create", "update")})
			role := s.RestrictOperator(all...)
			args := []string{p.Dir, "--crds=leave", harness.Alone, "--leader-elect", "--leader-elect-namespace", s.Namespace, "--leader-election-id", "lost"}
			from := harness.MarkAudit(t)
			leader := s.StartOperator(args...)
			leader.ExpectLog("Successfully acquired lease", s.Namespace+"/lost")
			cr := s.Create(p.Thing(s, "shop", nil))
			s.ExpectResourceReady(cr)

			lost := time.Now()
			row.lose(s, role, harness.Object("coordination.k8s.io/v1", "Lease", s.Namespace, "lost"), rules)
			edits := 0
			harness.Eventually(t, "the leader to end", func() error {
				select {
				case <-leader.Ended:
					return nil
				default:
				}
				edits++
				s.Patch(cr, harness.Spec(map[string]any{"text": strconv.Itoa(edits)}))
				return errors.New("it runs")
			})
			renewed, wrote := lastWrites(s.RequestsOf(from, s.User))
			t.Logf("%s: after %d edits, the last write came %s after the last renewal", row.reason, edits, wrote.Sub(renewed).Round(time.Millisecond))
			if after := wrote.Sub(renewed); after > renewDeadline {
				t.Errorf("it wrote %s after its last renewal", after)
			}
			if after := wrote.Sub(renewed); after < renewDeadline/2 {
				t.Errorf("its last write came %s after its last renewal: it had nothing to write, and the test shows nothing", after)
			}

			// It comes back once nobody holds the Lease any more.
			s.Patch(role, map[string]any{"rules": all})
			s.StartOperator(args...).ExpectLog("Successfully acquired lease", s.Namespace+"/lost")
			if waited := time.Since(lost); name == "taken" && waited < leaseTime {
				t.Errorf("it leads %s after somebody has taken the Lease for %s", waited, leaseTime)
			}
			s.ExpectData("edited-shop", "text", strconv.Itoa(edits))
		})
	}
}

// leases is the rule by which a process may use verbs on Leases.
func leases(verbs ...any) map[string]any {
	return harness.Rule("coordination.k8s.io", verbs, "leases")
}

// lastWrites returns when the Lease was renewed for the last time, and when anything else was written.
func lastWrites(all harness.Requests) (renewed, wrote time.Time) {
	for _, e := range all.Writes() {
		switch {
		case e.Resource == "leases" && e.Code < 300 && e.Time.After(renewed):
			renewed = e.Time
		case e.Resource != "leases" && e.Time.After(wrote):
			wrote = e.Time
		}
	}
	return renewed, wrote
}

// Of three processes, one writes, whoever of them ends.
func TestW44OfThreeProcessesOneWritesAtATime(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "three", editedBody)
	args := []string{p.Dir, "--leader-elect", "--leader-elect-namespace", s.Namespace, "--leader-election-id", "three"}
	var processes []*harness.Operator
	var users []string
	leading := func() int {
		for i, o := range processes {
			select {
			case <-o.Ended:
			default:
				if harness.ContainsAll(o.Log.From(0), []string{"Successfully acquired lease"}) {
					return i
				}
			}
		}
		return -1
	}
	from := harness.MarkAudit(t)
	for range 3 {
		standBy(t, s)
		users = append(users, s.User)
		o := s.StartOperator(args...)
		processes = append(processes, o)
		if len(processes) == 1 {
			o.ExpectLog("Successfully acquired lease")
		}
	}
	var all []*unstructured.Unstructured
	for i := range 3 {
		all = append(all, s.Create(p.Thing(s, fmt.Sprint("shop", i), nil)))
	}
	for round := range 3 {
		text := fmt.Sprint("round ", round)
		for _, cr := range all {
			s.Patch(cr, harness.Spec(map[string]any{"text": text}))
		}
		for _, cr := range all {
			s.ExpectData("edited-"+cr.GetName(), "text", text)
		}
		leader := leading()
		if leader < 0 {
			t.Fatal("nobody leads")
		}
		by := map[string]bool{}
		for _, e := range s.RequestsOf(from, users...).Mutating().Filter(func(e controlplane.AuditEvent) bool { return e.Resource != "leases" }) {
			by[e.User] = true
		}
		if len(by) != 1 || !by[users[leader]] {
			t.Errorf("round %d: process %d leads, and %v have written", round, leader, by)
		}
		processes[leader].Stop()
		from = harness.MarkAudit(t)
	}
}
