package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

func TestTheLogBeginsWithTheClusterAndTheUser(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.createAndStopOperator(newTestPackage(t, "firstline", layeredBody)) // somebody else's, which waits for the engine when it is deleted
	from := harness.MarkAudit(t)
	o := s.StartOperator(newTestPackage(t, "firstlineby", bystanderBody).Dir)
	o.ExpectLog(packageMissingText, "firstline")
	first, _, _ := strings.Cut(o.Log.From(0), "\n")
	if !harness.ContainsAll(first, []string{"msg=cluster", "context=", "server=https://127.0.0.1:", s.User}) {
		t.Errorf("the first line is %s", first)
	}
	if said := slices.Collect(harness.Lines(o.Log.From(0), packageMissingText)); len(said) != 1 || strings.Contains(o.Log.From(0), "torn down") {
		t.Errorf("the packages of others make a beginner worry:\n%s", o.Log.From(0))
	}
	events, err := harness.Suite.ControlPlane.AuditEvents(t.Context(), from, s.User)
	if err != nil {
		t.Fatal(err)
	}
	if asked := harness.Requests(events).Filter(func(e controlplane.AuditEvent) bool { return e.Resource == "selfsubjectreviews" }); len(asked) != 1 {
		t.Errorf("it was asked who asks: %s", asked)
	}
}

func TestClusterThatNobodyNamedIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "unnamed", layeredBody)
	config, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	// The address of a production cluster that this machine can reach.
	harness.WriteFile(t, filepath.Join(home, ".kube", "config"), strings.ReplaceAll(string(config), "https://127.0.0.1:", "https://192.0.2.1:"))
	cmd := exec.Command(harness.Suite.Operetta, "run", p.Dir, "--namespace", s.Namespace)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KUBECONFIG=") }), "HOME="+home)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	if !harness.ContainsAll(string(out), []string{"no cluster was named", "--context", "https://192.0.2.1:"}) || strings.Contains(string(out), "level=") {
		t.Errorf("it says\n%s", out)
	}
}
