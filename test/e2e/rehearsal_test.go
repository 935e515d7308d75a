package e2e

import (
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// rehearse runs a dry run on the cluster and returns what it prints.
func (s *site) rehearse(args ...string) (string, error) {
	s.t.Helper()
	all := append([]string{"run", "--dry-run=server", "--kubeconfig", s.kubeconfig, "--namespace", s.namespace}, args...)
	cmd := exec.Command(world.operetta, all...)
	cmd.Dir = world.root
	out, err := cmd.Output()
	return string(out), err
}

func TestADryRunOnTheClusterSaysWhatWouldBeDoneAndDoesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.operate(packageOf("webapp"))
	s.create(s.webapp("shop", everything()))
	s.expectReady("shop")
	o.stop()
	before := s.versions()
	events := s.ownEvents()

	changed := copyPackage(t, "webapp", nil)
	writeFile(t, filepath.Join(changed.dir, "more.cue"), `package webapp

components: config: objects: more: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-more"}
`)
	file := filepath.Join(t.TempDir(), "new.yaml")
	writeFile(t, file, "apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: another}\nspec: {image: \"nginx:1\"}\n")
	for name, row := range map[string]struct {
		args      []string
		parts, no []string
	}{
		"the same package":  {[]string{packageOf("webapp")}, []string{"WebApp " + s.namespace + "/shop  Ready"}, []string{"  + ", "  ~ ", "  - "}},
		"a changed package": {[]string{changed.dir}, []string{"  + ConfigMap " + s.namespace + "/shop-more"}, []string{"  ~ ", "  - "}},
		"another resource":  {[]string{packageOf("webapp"), "-f", file}, []string{"  + ConfigMap " + s.namespace + "/another", "  + Deployment " + s.namespace + "/another"}, []string{"shop"}},
		"the deletion":      {[]string{packageOf("webapp"), "--delete"}, []string{"  - Deployment " + s.namespace + "/shop", "  - ConfigMap " + s.namespace + "/shop"}, []string{"  + "}},
	} {
		out, err := s.rehearse(row.args...)
		if err != nil {
			t.Errorf("%s: %v: %s\n%s", name, err, stderrOf(err), out)
		}
		for _, p := range row.parts {
			if !strings.Contains(out, p) {
				t.Errorf("%s: want %q in\n%s", name, p, out)
			}
		}
		for _, p := range row.no {
			if strings.Contains(out, p) {
				t.Errorf("%s: want no %q in\n%s", name, p, out)
			}
		}
	}
	if after := s.versions(); !maps.Equal(before, after) {
		t.Errorf("something was written: before %v, after %v", before, after)
	}
	if n := s.ownEvents(); n != events {
		t.Errorf("%d events were written", n-events)
	}
}

// ownEvents returns how many events operators have recorded: controllers of the
// control plane record others at any time.
func (s *site) ownEvents() int {
	s.t.Helper()
	n := 0
	for _, e := range s.list("events.k8s.io/v1", "Event") {
		if e.Object["reportingController"] == "operetta" {
			n++
		}
	}
	return n
}
