package e2e

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"operetta.dev/engine/explain"
	"operetta.dev/test/harness"
)

// operettaAs runs a command of operetta with a kubeconfig, and returns what it prints and its exit code.
func (s *env) operettaAs(kubeconfig string, args ...string) (text string, code int) {
	s.T.Helper()
	cmd := exec.CommandContext(s.T.Context(), harness.Suite.Operetta, append(args, "--kubeconfig", kubeconfig, "--namespace", s.Namespace)...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		s.T.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// expectParts fails the test if a text lacks parts, in this order.
func (s *env) expectParts(text string, parts ...string) {
	s.T.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			s.T.Errorf("%q is missing, or not behind what comes before it, in:\n%s", part, text)
			return
		}
		rest = after
	}
}

func TestExplainSaysWhatAResourceWaitsForDownToItsPods(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "explained", claimingBody)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "db", map[string]any{"replicas": int64(1)}))
	s.ExpectNotReady(cr, "NotReady", "PersistentVolumeClaim data-db-0 is Pending")
	kind := "things." + cr.GroupVersionKind().Group

	text, code := s.operettaAs(s.AdminKubeconfig(), "explain", kind+"/db")
	t.Logf("operetta explain:\n%s", text)
	if code != 1 {
		t.Errorf("the exit code is %d for a resource that is not ready", code)
	}
	s.expectParts(text, cr.GetKind()+"/db in "+s.Namespace, "Waiting", "2/3 components",
		"data  … Applied  NotReady  for ", "StatefulSet/db  not ready", "└─ Pod/db-0  not ready", "no node was found for it: ", "PersistentVolumeClaim/data-db-0  not ready")
	s.expectParts(text, "plain  ✓ Verified", "StatefulSet/db-plain  ready", "after  ✓ Verified", "ConfigMap/db  ready")

	out, code := s.operettaAs(s.AdminKubeconfig(), "explain", kind, "db", "-o", "json")
	var r explain.Resource
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 || len(r.Components) != 3 || r.Health != explain.NotReady {
		t.Errorf("as JSON it is %v, exit code %d, %v", r, code, err)
	}

	list, code := s.operettaAs(s.AdminKubeconfig(), "status")
	t.Logf("operetta status:\n%s", list)
	s.expectParts(list, "NAMESPACE", "PHASE", s.Namespace, "thing/db", "Waiting", "2/3", "PersistentVolumeClaim data-db-0 is Pending")
	if code != 1 {
		t.Errorf("the exit code of the list is %d", code)
	}
}

func TestExplainEndsWellForWhatIsReadyAndSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "told", `#Spec: text: string
live: _
components: config: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: text: cr.spec.text}
components: token: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: cr.metadata.name, stringData: token: "s3cr3t-of-the-test"}
`)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{"text": "hello"}))
	s.ExpectResourceReady(cr)
	kind := "things." + cr.GroupVersionKind().Group // other tests have kinds of that name
	// Somebody who may see the resource and no Secrets.
	reader := s.Tenant("reader", s.Namespace, map[string]any{
		"apiGroups": []any{cr.GroupVersionKind().Group, ""}, "resources": []any{"things", "configmaps"}, "verbs": []any{"get", "list"},
	})
	for name, row := range map[string]struct {
		kubeconfig string
		args       []string
		code       int
		parts      []string
		reason     string
	}{
		"ready": {s.AdminKubeconfig(), []string{"explain", kind + "/one"}, 0, []string{"Ready", "2/2 components", "ConfigMap/one  ready", "Secret/one  ready"},
			"a script asks by the exit code"},
		"the kind and the name apart": {s.AdminKubeconfig(), []string{"explain", kind, "one"}, 0, []string{"Ready"}, "kubectl takes that, too"},
		"a list of what is ready":     {s.AdminKubeconfig(), []string{"status", kind}, 0, []string{"thing/one", "Ready"}, "a list says it of each"},
		"without the right to see":    {reader.Kubeconfig, []string{"explain", kind + "/one"}, 0, []string{"Secret/one  cannot be read", "Forbidden"}, "the rest is shown"},
		"a resource that is not there": {s.AdminKubeconfig(), []string{"explain", kind + "/two"}, 1, []string{"two", "does not exist"},
			"the namespace is in the message, since it may be the wrong one"},
		"a kind that is not there": {s.AdminKubeconfig(), []string{"explain", "nonsense/one"}, 1, []string{"nonsense", "serves no such kind"}, "it may be misspelled"},
		"no name":                  {s.AdminKubeconfig(), []string{"explain", kind}, 1, []string{"is not KIND/NAME", "operetta status"}, "the command line is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, code := s.operettaAs(row.kubeconfig, row.args...)
			if code != row.code {
				t.Errorf("the exit code is %d, not %d: %s\n%s", code, row.code, row.reason, text)
			}
			for _, part := range row.parts {
				if !strings.Contains(text, part) {
					t.Errorf("%q is missing (%s):\n%s", part, row.reason, text)
				}
			}
			if strings.Contains(text, "s3cr3t") {
				t.Errorf("it shows a secret:\n%s", text)
			}
		})
	}
}
