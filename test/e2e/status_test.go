package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// table parses the output of kubectl get, and returns the given columns for each name.
func table(t *testing.T, output string, columns ...string) map[string][]string {
	t.Helper()
	all := strings.Split(output, "\n")
	head := strings.Fields(all[0])
	out := map[string][]string{}
	for _, line := range all[1:] {
		cells := strings.Fields(line)
		if len(cells) != len(head) {
			t.Fatalf("a line has %d cells, and the head %d:\n%s", len(cells), len(head), output)
		}
		for i, name := range head {
			for _, c := range columns {
				if c == name {
					out[cells[0]] = append(out[cells[0]], cells[i])
				}
			}
		}
	}
	return out
}

func TestKubectlShowsPhaseComponentsAndWhatBlocksThem(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.ConfigMap("blocked", map[string]any{"made": "by hand"}))
	s.Create(s.Webapp("blocked", allFields()))
	s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	s.ExpectNotReady(s.Ref("WebApp", "blocked"), "OwnedByAnother", "wait for it")

	got := table(t, s.Kubectl("get", "webapp"), "READY", "PHASE", "COMPONENTS")
	want := map[string][]string{"shop": {"True", "Ready", "5/5"}, "blocked": {"False", "Failed", "0/5"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kubectl get webapp (-want +got):\n%s", diff)
	}
	if text := s.Kubectl("describe", "webapp", "blocked"); !strings.Contains(text, "Blocks:") {
		t.Errorf("kubectl describe does not say what is blocked:\n%s", text)
	}
}

func TestAConditionOfAnotherManagerStaysAndCostsNoRequest(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	file := t.TempDir() + "/audited.yaml"
	harness.WriteFile(t, file, `apiVersion: example.com/v1
kind: WebApp
metadata: {name: shop}
status: {conditions: [{type: Audited, status: "True", reason: Done, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`)
	s.Kubectl("apply", "--server-side", "--subresource=status", "--field-manager=auditor", "-f", file)
	s.WaitUntilIdle()
	from := harness.MarkAudit(t)
	for range 3 {
		s.reconcileOnce("shop")
	}
	if written := s.OperatorRequests(from).Mutating(); len(written) > 0 {
		t.Errorf("the operator wrote at rest: %s", written)
	}
	s.Patch(s.Ref("WebApp", "shop"), harness.Spec(map[string]any{"image": "nginx:1.26"}))
	cr := s.ExpectReady("shop")
	if got := harness.Condition(cr, "Audited"); got["status"] != "True" {
		t.Errorf("the condition of another manager is %v", got)
	}
}
