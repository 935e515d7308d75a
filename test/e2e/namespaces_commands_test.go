package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"operetta.dev/test/harness"
)

// TestCommandsReadTheNamespacesOfAnOperator asks with the list of namespaces of the operator, which leaves a third one out.
func TestCommandsReadTheNamespacesOfAnOperator(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	far, left := s.Namespace+"-far", s.Namespace+"-left"
	for _, namespace := range []string{far, left} {
		s.Create(harness.Object("v1", "Namespace", "", namespace))
	}
	p := newTestPackage(t, "askednamespaces", note("a"))
	s.StartOperator(p.Dir, "--namespace="+strings.Join([]string{s.Namespace, far, left}, ","))
	for _, cr := range s.inNamespaces(p.TestPackage, "shop", nil, s.Namespace, far, left) {
		s.ExpectResourceReady(cr)
	}
	both := s.in(s.Namespace + "," + far)
	kind := "things." + p.Name + ".example.com"
	offline := func(args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), harness.Suite.Operetta, args...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	inBoth := func(what, text string) {
		t.Helper()
		for _, namespace := range []string{s.Namespace, far} {
			if !slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n/\"<>,", r) }), func(word string) bool { return word == namespace }) {
				t.Errorf("%s does not have what is in %s:\n%s", what, namespace, text)
			}
		}
		if strings.Contains(text, left) {
			t.Errorf("%s has what is in %s:\n%s", what, left, text)
		}
	}

	text, code := both.operettaAs(s.AdminKubeconfig(), "status", kind)
	if code != 0 {
		t.Errorf("operetta status: exit code %d", code)
	}
	inBoth("operetta status", text)

	next := newTestPackage(t, "askednamespaces", note("b"))
	text, code = s.operettaAs(s.AdminKubeconfig(), "plan", next.Dir, "-n", far)
	if code != 2 {
		t.Errorf("operetta plan: exit code %d", code)
	}
	inBoth("operetta plan", text)

	file := filepath.Join(t.TempDir(), "dump.tar.gz")
	if text, code = both.operettaAs(s.AdminKubeconfig(), "dump", next.Dir, "-o", file); code != 0 {
		t.Fatalf("operetta dump: exit code %d: %s", code, text)
	}
	text, code = offline("plan", next.Dir, "--from", file)
	if code != 2 || !strings.Contains(text, "the dump has the resources in the namespaces "+s.Namespace+", "+far+" alone") {
		t.Errorf("operetta plan --from: exit code %d:\n%s", code, text)
	}
	inBoth("operetta plan --from", text)
	if text, code = offline("plan", next.Dir, "--from", file, "-n", left); code != 1 || !strings.Contains(text, "and none in "+left) {
		t.Errorf("operetta plan --from, of a namespace that the dump does not have: exit code %d:\n%s", code, text)
	}

	inBoth("operetta ui", get(t, both.pages(kind), http.StatusOK))
}

// in returns the environment of another namespace, or a list of them.
func (s *env) in(namespace string) *env {
	out, inner := *s, *s.Env
	inner.Namespace = namespace
	out.Env = &inner
	return &out
}

// TestAClusterScopedResourceIsListedOnce asks for it in two namespaces, and it is in none.
func TestAClusterScopedResourceIsListedOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "askedcluster", "scope: \"Cluster\"\n"+strings.Replace(note("a"), "metadata: name:", "metadata: namespace: \""+s.Namespace+"\"\n\tmetadata: name:", 1))
	s.StartOperator(p.Dir, harness.Everywhere, harness.Alone)
	cr := p.Thing(s.Env, s.Namespace, map[string]any{"text": "a"})
	cr.SetNamespace("")
	s.ExpectResourceReady(s.Create(cr))
	text, _ := s.operettaAs(s.AdminKubeconfig(), "status", "things."+p.Name+".example.com", "-n", "default")
	if n := strings.Count(text, "thing/"+s.Namespace); n != 1 {
		t.Errorf("it is there %d times:\n%s", n, text)
	}
}
