package e2e

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"operetta.dev/test/harness"
)

// TestPagesShowTheResourcesOfTheCluster opens the pages of operetta ui.
func TestPagesShowTheResourcesOfTheCluster(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "paged", "#Spec: {}\ncomponents: one: objects: cm: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: cr.metadata.name}")
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shown", map[string]any{}))
	s.ExpectResourceReady(cr)
	url := s.pages("things." + cr.GroupVersionKind().Group)
	list := get(t, url, http.StatusOK)
	s.expectParts(list, "1 resource<", "/shown</a>", "Ready", "1/1")
	path := "resource/" + cr.GetKind() + ".v1." + cr.GroupVersionKind().Group + "/" + s.Namespace + "/shown"
	s.expectParts(get(t, url+path, http.StatusOK), cr.GetKind()+"/shown", "one", "ConfigMap/shown", "<img src=")
	s.expectParts(get(t, url+strings.Replace(path, "resource", "picture", 1), http.StatusOK), "<svg", "ConfigMap/shown")
	s.expectParts(get(t, url+path+"-not", http.StatusBadGateway), "This cannot be shown", "shown-not")
}

// pages starts operetta ui, and returns the address of its pages. It ends with the test.
func (s *env) pages(kind string) string {
	s.T.Helper()
	cmd := exec.CommandContext(s.T.Context(), harness.Suite.Operetta, "ui", kind, "--kubeconfig", s.AdminKubeconfig(), "--namespace", s.Namespace)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = cmd.Wait() }) // the context of the test has ended it
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.T.Fatal(err)
	}
	url, _, _ := strings.Cut(line, " ")
	return url
}

// get returns a page, which has to have a status.
func get(t *testing.T, url string, status int) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		t.Errorf("%s: %s, want %d, %v", url, answer.Status, status, err)
	}
	return string(body)
}
