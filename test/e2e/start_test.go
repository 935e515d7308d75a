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
)

func TestTheLogBeginsWithTheClusterAndTheUser(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.abandon(newSmall(t, "firstline", layered)) // somebody else's, which waits for the engine when it is deleted
	from := mark(t)
	o := s.operate(newSmall(t, "firstlineby", bystander).dir)
	o.expectLog(without, "firstline")
	first, _, _ := strings.Cut(o.log.from(0), "\n")
	if !containsAll(first, []string{"msg=cluster", "context=", "server=https://127.0.0.1:", s.user}) {
		t.Errorf("the first line is %s", first)
	}
	if said := slices.Collect(lines(o.log.from(0), without)); len(said) != 1 || strings.Contains(o.log.from(0), "torn down") {
		t.Errorf("the packages of others make a beginner worry:\n%s", o.log.from(0))
	}
	events, err := world.cp.AuditEvents(t.Context(), from, s.user)
	if err != nil {
		t.Fatal(err)
	}
	if asked := requests(events).only(func(e controlplane.AuditEvent) bool { return e.Resource == "selfsubjectreviews" }); len(asked) != 1 {
		t.Errorf("it was asked who asks: %s", asked)
	}
}

func TestClusterThatNobodyNamedIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "unnamed", layered)
	config, err := os.ReadFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	// The address of production, which this machine happens to reach.
	writeFile(t, filepath.Join(home, ".kube", "config"), strings.ReplaceAll(string(config), "https://127.0.0.1:", "https://192.0.2.1:"))
	cmd := exec.Command(world.operetta, "run", p.dir, "--namespace", s.namespace)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KUBECONFIG=") }), "HOME="+home)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 {
		t.Errorf("it ended with %v", err)
	}
	if !containsAll(string(out), []string{"no cluster was named", "--context", "https://192.0.2.1:"}) || strings.Contains(string(out), "level=") {
		t.Errorf("it says\n%s", out)
	}
}
