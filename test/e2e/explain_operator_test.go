package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/history"
	"operetta.dev/test/harness"
	"operetta.dev/test/internal/child"
)

// triggeredBody is a package whose resources have a Deployment and an input, and a timer.
const triggeredBody = `#Spec: replicas: int
live: _
inputs: settings: {apiVersion: "v1", kind: "ConfigMap", name: "settings"}
components: web: objects: deployment: {
	apiVersion: "apps/v1", kind: "Deployment", metadata: name: cr.metadata.name
	spec: {
		replicas: cr.spec.replicas
		selector: matchLabels: app: cr.metadata.name
		template: {
			metadata: labels: app: cr.metadata.name
			spec: containers: [{name: "web", image: "nginx"}]
		}
	}
}
components: token: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: cr.metadata.name, stringData: token: "s3cr3t-of-the-test"}
requeueAfter: "2s"
`

// report asks an operator about a resource through the command, and returns what it knows.
func (s *env) report(kubeconfig, address, resource string) history.Report {
	s.T.Helper()
	out, _ := s.operettaAs(kubeconfig, "explain", resource, "-o", "json", "--operator-address", address)
	var r explain.Resource
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		s.T.Fatalf("%v\n%s", err, out)
	}
	if r.Operator == nil {
		s.T.Fatalf("the operator is not asked: %s", r.OperatorMissing)
	}
	return *r.Operator
}

// has reports whether a reconcile was triggered so.
func has(r history.Report, is func(history.Trigger) bool) bool {
	return slices.ContainsFunc(r.Reconciles, func(one history.Reconcile) bool { return slices.ContainsFunc(one.Triggers, is) })
}

// changedBy returns what says that a manager has changed a field of an object.
func changedBy(cause history.Cause, kind, name, field, manager string) func(history.Trigger) bool {
	return func(t history.Trigger) bool {
		return t.Cause == cause && t.Kind == kind && t.Name == name && slices.ContainsFunc(t.Changes, func(c history.Change) bool {
			return c.Manager == manager && slices.Contains(c.Fields, field)
		})
	}
}

// expectTrigger waits until a reconcile was triggered so.
func (s *env) expectTrigger(address, resource, what string, is func(history.Trigger) bool) history.Report {
	s.T.Helper()
	var r history.Report
	harness.Eventually(s.T, what, func() error {
		if r = s.report(s.AdminKubeconfig(), address, resource); !has(r, is) {
			return fmt.Errorf("the triggers are %v", r.Reconciles)
		}
		return nil
	})
	return r
}

func TestExplainNamesWhatTriggeredTheLastReconciles(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "triggered", triggeredBody)
	s.Create(s.ConfigMap("settings", map[string]any{"a": "b"}))
	address := s.startSecure(p.Dir).Address(harness.MetricsServer)
	cr := s.Create(p.Thing(s.Env, "web", map[string]any{"replicas": int64(1)}))
	s.ExpectResourceReady(cr)
	resource := "things." + cr.GroupVersionKind().Group + "/web"
	for _, row := range []struct {
		what, reason string
		do           func()
		is           func(history.Trigger) bool
	}{
		{"its creation", "the first trigger of all", func() {}, func(t history.Trigger) bool { return t.Cause == history.Resource && t.Action == history.Created }},
		{
			"an edit of the resource", "by the name that kubectl gives itself", func() {
				s.Kubectl("patch", resource, "--type=merge", "--patch", `{"spec":{"replicas":2}}`, "--field-manager=kubectl-edit")
			},
			changedBy(history.Resource, "Thing", "web", "spec.replicas", "kubectl-edit"),
		},
		{
			"what the controller of Deployments has changed", "no write of the engine's own, and after the first list, which has no changes", func() {},
			changedBy(history.Object, "Deployment", "web", "status.availableReplicas", "kube-controller-manager"),
		},
		{
			"drift", "another manager changes what the package renders", func() {
				s.Kubectl("patch", "deployment/web", "--type=merge", "--patch", `{"spec":{"replicas":7}}`, "--field-manager=autoscaler")
			},
			changedBy(history.Object, "Deployment", "web", "spec.replicas", "autoscaler"),
		},
		{
			"an input", "it is not an object of the resource", func() {
				s.Kubectl("patch", "configmap/settings", "--type=merge", "--patch", `{"data":{"a":"c"}}`, "--field-manager=somebody")
			},
			changedBy(history.Input, "ConfigMap", "settings", "data.a", "somebody"),
		},
		{
			"what a Secret holds", "its keys are nobody's business", func() {
				s.Kubectl("patch", "secret/web", "--type=merge", "--patch", `{"stringData":{"key-of-the-test":"x"}}`, "--field-manager=thief")
			},
			changedBy(history.Object, "Secret", "web", `data["***"]`, "thief"),
		},
		{"a timer", "requeueAfter of the package", func() {}, func(t history.Trigger) bool {
			return t.Cause == history.TimerDue && t.After != nil && t.After.Duration == 2*time.Second
		}},
	} {
		row.do()
		s.expectTrigger(address, resource, row.what+": "+row.reason, row.is)
	}
	text, code := s.operettaAs(s.AdminKubeconfig(), "explain", resource, "--operator-address", address)
	t.Logf("operetta explain:\n%s", text)
	s.expectParts(text, "Secret/web  ready", "reconciles  ", " as far as this operator process knows", "next: timer: requeueAfter 2s", "watches: Thing, Deployment, Secret, input ConfigMap/settings")
	if code != 0 || strings.Contains(text, "s3cr3t") || strings.Contains(text, "key-of-the-test") {
		t.Errorf("the exit code is %d:\n%s", code, text)
	}
}

// askAs sends a request as the user of a kubeconfig, by the certificate of that user.
func (s *env) askAs(kubeconfig, address string) (code int, body string) {
	s.T.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		s.T.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		s.T.Fatal(err)
	}
	x := scraper{&http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}}}
	code, body, _, err = x.get(address, "")
	if err != nil {
		s.T.Fatal(err)
	}
	return code, body
}

// cleanup returns a context for what a test removes: its own has ended.
func cleanup(t *testing.T) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}

func TestExplainDrawsTriggersAgainAsTheyCome(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "watched", heldBody)
	address := s.startSecure(p.Dir).Address(harness.MetricsServer)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	resource := "things." + cr.GroupVersionKind().Group + "/one"
	cmd := exec.Command(harness.Suite.Operetta, "explain", resource, "--watch", "--operator-address", address, "--kubeconfig", s.AdminKubeconfig(), "--namespace", s.Namespace)
	watching, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watching.Kill)
	expect := func(part string) {
		t.Helper()
		harness.Eventually(t, "a picture with "+part, func() error {
			if text := watching.Log.From(0); !strings.Contains(text, part) {
				return fmt.Errorf("there is none:\n%s", text)
			}
			return nil
		})
	}
	expect("the resource: created by ")
	s.Kubectl("patch", resource, "--type=merge", "--patch", `{"spec":{"text":"b"}}`, "--field-manager=kubectl-edit")
	expect("the resource: spec.text by kubectl-edit")
}
