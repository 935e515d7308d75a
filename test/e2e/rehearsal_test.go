package e2e

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// dryRun runs a dry run on the cluster and returns what it prints.
func (s *env) dryRun(args ...string) (string, error) {
	s.T.Helper()
	all := append([]string{"run", "--dry-run=server", "--kubeconfig", s.AdminKubeconfig(), "--namespace", s.Namespace}, args...)
	cmd := exec.Command(harness.Suite.Operetta, all...)
	cmd.Dir = harness.Suite.Root
	out, err := cmd.Output()
	return string(out), err
}

func TestADryRunOnTheClusterSaysWhatWouldBeDoneAndDoesNothing(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	o.Stop()
	before := s.versions()
	events := s.ownEvents()

	changed := copyPackage(t, "webapp", nil)
	harness.WriteFile(t, filepath.Join(changed.dir, "more.cue"), `package webapp

components: config: objects: more: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-more"}
`)
	file := filepath.Join(t.TempDir(), "new.yaml")
	harness.WriteFile(t, file, "apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: another}\nspec: {image: \"nginx:1\"}\n")
	for name, row := range map[string]struct {
		args      []string
		parts, no []string
	}{
		"the same package":  {[]string{harness.PackageDir("webapp")}, []string{"WebApp " + s.Namespace + "/shop  Ready"}, []string{"  + ", "  ~ ", "  - "}},
		"a changed package": {[]string{changed.dir}, []string{"  + ConfigMap " + s.Namespace + "/shop-more"}, []string{"  ~ ", "  - "}},
		"another resource":  {[]string{harness.PackageDir("webapp"), "-f", file}, []string{"  + ConfigMap " + s.Namespace + "/another", "  + Deployment " + s.Namespace + "/another"}, []string{"shop"}},
		"the deletion":      {[]string{harness.PackageDir("webapp"), "--delete"}, []string{"  - Deployment " + s.Namespace + "/shop", "  - ConfigMap " + s.Namespace + "/shop"}, []string{"  + "}},
	} {
		out, err := s.dryRun(row.args...)
		if err != nil {
			t.Errorf("%s: %v: %s\n%s", name, err, harness.StderrOf(err), out)
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
	machine.Thorough(t)
	s := newEnv(t)
	above, below := newTestPackage(t, "upper", strings.ReplaceAll(parentBody, "child.example.com", "lower.example.com")), newTestPackage(t, "lower", childBody)
	if err := harness.InstallCRDs(t.Context(), above.Dir, below.Dir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shop.yaml")
	harness.WriteFile(t, file, "apiVersion: upper.example.com/v1\nkind: Thing\nmetadata: {name: shop}\nspec: {text: a}\n")
	s.Create(s.ConfigMap("gate-a", map[string]any{"open": "a"}))
	before := s.versions()
	out, err := s.dryRun(above.Dir, below.Dir, "-f", file)
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, harness.StderrOf(err), out)
	}
	want := []string{
		"step 1  Thing " + s.Namespace + "/shop  Waiting",
		"+ Thing " + s.Namespace + "/child-shop",
		"step 2  Thing " + s.Namespace + "/child-shop  Ready",
		"+ ServiceAccount " + s.Namespace + "/first",
		"+ ConfigMap " + s.Namespace + "/second",
	}
	got := slices.DeleteFunc(slices.Collect(harness.Lines(out, "  ")), func(line string) bool { return !strings.HasPrefix(line, "step") && !strings.HasPrefix(line, "+") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what it says (-want +got):\n%s", diff)
	}
	if after := s.versions(); !maps.Equal(before, after) {
		t.Errorf("something was written: before %v, after %v", before, after)
	}
}

// ownEvents returns the number of events that operators have recorded. The controllers of the control
// plane record other events at any time.
func (s *env) ownEvents() int {
	s.T.Helper()
	n := 0
	for _, e := range s.List("events.k8s.io/v1", "Event") {
		if e.Object["reportingController"] == "operetta" {
			n++
		}
	}
	return n
}
