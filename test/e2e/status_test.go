package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// table reads what kubectl get prints: for each name the wanted columns.
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
	s := newSite(t)
	s.operate(packageOf("webapp"))
	s.create(s.configMap("blocked", map[string]any{"made": "by hand"}))
	s.create(s.webapp("blocked", everything()))
	s.create(s.webapp("shop", everything()))
	s.expectReady("shop")
	s.expectNotReady(s.ref("WebApp", "blocked"), "OwnedByAnother", "wait for it")

	got := table(t, s.kubectl("get", "webapp"), "READY", "PHASE", "COMPONENTS")
	want := map[string][]string{"shop": {"True", "Ready", "5/5"}, "blocked": {"False", "Failed", "0/5"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kubectl get webapp (-want +got):\n%s", diff)
	}
	if text := s.kubectl("describe", "webapp", "blocked"); !strings.Contains(text, "Blocks:") {
		t.Errorf("kubectl describe does not say what is blocked:\n%s", text)
	}
}

func TestAConditionOfAnotherManagerStaysAndCostsNoRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	s.create(s.webapp("shop", everything()))
	s.expectReady("shop")
	file := t.TempDir() + "/audited.yaml"
	writeFile(t, file, `apiVersion: example.com/v1
kind: WebApp
metadata: {name: shop}
status: {conditions: [{type: Audited, status: "True", reason: Done, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`)
	s.kubectl("apply", "--server-side", "--subresource=status", "--field-manager=auditor", "-f", file)
	s.settle()
	from := mark(t)
	for range 3 {
		s.reconcileOnce("shop")
	}
	if written := s.operatorRequests(from).mutating(); len(written) > 0 {
		t.Errorf("the operator wrote at rest: %s", written)
	}
	s.patch(s.ref("WebApp", "shop"), spec(map[string]any{"image": "nginx:1.26"}))
	cr := s.expectReady("shop")
	if got := condition(cr, "Audited"); got["status"] != "True" {
		t.Errorf("the condition of another manager is %v", got)
	}
}
