package e2e

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestADryRunOnTheClusterGoesDownIntoSubsystems(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	above, below := newSmall(t, "upper", strings.ReplaceAll(parent, "child.example.com", "lower.example.com")), newSmall(t, "lower", child)
	if err := installCRDs(t.Context(), above.dir, below.dir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	writeFile(t, file, "apiVersion: upper.example.com/v1\nkind: Thing\nmetadata: {name: shop}\nspec: {text: a}\n")
	s.create(s.configMap("gate-a", map[string]any{"open": "a"}))
	before := s.versions()
	out, err := s.rehearse(above.dir, below.dir, "-f", file)
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, stderrOf(err), out)
	}
	want := []string{
		"step 1  Thing " + s.namespace + "/shop  Waiting",
		"+ Thing " + s.namespace + "/child-shop",
		"step 2  Thing " + s.namespace + "/child-shop  Ready",
		"+ ServiceAccount " + s.namespace + "/first",
		"+ ConfigMap " + s.namespace + "/second",
	}
	got := slices.DeleteFunc(slices.Collect(lines(out, "  ")), func(line string) bool { return !strings.HasPrefix(line, "step") && !strings.HasPrefix(line, "+") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what it says (-want +got):\n%s", diff)
	}
	if after := s.versions(); !maps.Equal(before, after) {
		t.Errorf("something was written: before %v, after %v", before, after)
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
