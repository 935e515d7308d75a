package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"operetta.dev/engine/history"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// heldBody is a package whose resources have a ConfigMap.
const heldBody = `#Spec: text: string
components: config: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: text: cr.spec.text}
`

func TestOnlyWhoMayGetAResourceLearnsWhatTriggeredIt(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "private", heldBody)
	address := s.startSecure(p.Dir).Address(harness.MetricsServer)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{"text": "a"}))
	s.Create(p.Thing(s.Env, "two", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	group := cr.GroupVersionKind().Group
	get := func(name string, extra map[string]any) *harness.Tenant {
		rule := map[string]any{"apiGroups": []any{group}, "resources": []any{"things"}, "verbs": []any{"get"}}
		maps.Copy(rule, extra)
		return s.Tenant(name, s.Namespace, rule)
	}
	reader, named := get("reader", nil), get("named", map[string]any{"resourceNames": []any{"one"}})
	stranger := s.Tenant("stranger", s.Namespace, harness.Rule("", []any{"get"}, "configmaps"))
	lister := s.Tenant("lister", s.Namespace, harness.Rule(group, []any{"list", "watch"}, "things"))
	token := func(name string, with bool) string {
		s.Kubectl("create", "serviceaccount", name)
		if with {
			s.Kubectl("create", "rolebinding", name, "--role=tenant-named", "--serviceaccount="+s.Namespace+":"+name)
		}
		return strings.TrimSpace(s.Kubectl("create", "token", name))
	}
	allowed, denied := token("allowed", true), token("denied", false)
	elsewhere := strings.TrimSpace(s.Kubectl("create", "token", "allowed", "--audience=elsewhere"))

	ask := func(token, name, namespace, kind string) (int, string, error) {
		q := url.Values{"group": {group}, "kind": {kind}, "namespace": {namespace}, "name": {name}}
		code, body, _, err := newScraper().get("https://"+address+history.Path+"?"+q.Encode(), token)
		return code, body, err
	}
	for name, row := range map[string]struct {
		reason, token, name, namespace, kind string
		code                                 int
	}{
		"may get it":               {"a role names it", allowed, "one", s.Namespace, "Thing", http.StatusOK},
		"may get another":          {"rights may be for one name", allowed, "two", s.Namespace, "Thing", http.StatusForbidden},
		"may get none":             {"an account of any tenant", denied, "one", s.Namespace, "Thing", http.StatusForbidden},
		"nobody":                   {"there is no anonymous access", "", "one", s.Namespace, "Thing", http.StatusUnauthorized},
		"a forged token":           {"nobody has issued it", "forged", "one", s.Namespace, "Thing", http.StatusUnauthorized},
		"a token for another":      {"it was not made for the API server", elsewhere, "one", s.Namespace, "Thing", http.StatusUnauthorized},
		"what is not there":        {"whether it is there is no stranger's business", denied, "three", s.Namespace, "Thing", http.StatusForbidden},
		"another namespace":        {"the role is for one", allowed, "one", "default", "Thing", http.StatusForbidden},
		"a kind that is not there": {"the same", allowed, "one", s.Namespace, "Nothing", http.StatusForbidden},
		"no name":                  {"a list is not offered", allowed, "", s.Namespace, "Thing", http.StatusBadRequest},
		"a name of a megabyte":     {"it is no name", allowed, strings.Repeat("x", 10_000), s.Namespace, "Thing", http.StatusBadRequest},
	} {
		harness.Eventually(t, fmt.Sprintf("%s gets %d", name, row.code), func() error {
			code, body, err := ask(row.token, row.name, row.namespace, row.kind)
			switch {
			case err != nil:
				return err
			case code != row.code:
				return fmt.Errorf("%s: the code is %d: %s", row.reason, code, body) // rights take a moment to be known
			case code != http.StatusOK && strings.Contains(body, "reconciles\""):
				return fmt.Errorf("it has a report: %s", body)
			}
			return nil
		})
	}
	resource := "things." + group + "/one"
	for name, row := range map[string]struct {
		of    *harness.Tenant
		parts []string
	}{
		"may get it": {reader, []string{"reconciles  ", "watches: Thing"}}, "may get that one": {named, []string{"reconciles  "}},
	} {
		text, _ := s.operettaAs(row.of.Kubeconfig, "explain", resource, "--operator-address", address)
		s.expectParts(text, row.parts...)
		if strings.Contains(text, "not known") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	for _, x := range []*harness.Tenant{stranger, lister} {
		q := url.Values{"group": {group}, "kind": {"Thing"}, "namespace": {s.Namespace}, "name": {"one"}}
		code, body := s.askAs(x.Kubeconfig, "https://"+address+history.Path+"?"+q.Encode())
		if code != http.StatusForbidden || strings.Contains(body, "triggers") {
			t.Errorf("%s gets %d: %s", x.User, code, body)
		}
	}
}

func TestAnOperatorThatMayNotVerifyCertificatesTakesTokens(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "modest", heldBody)
	s.RestrictOperator(append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps"), harness.Rule("", []any{"create"}, "serviceaccounts", "serviceaccounts/token"))...)
	secret := t.TempDir() + "/token"
	harness.WriteFile(t, secret, "0123456789abcdef")
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	address := s.StartOperator(p.Dir, "--crds=leave", "--metrics-secure", "--metrics-token-file", secret, harness.Alone).Address(harness.MetricsServer)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	text, code := s.operettaAs(s.AdminKubeconfig(), "explain", "things."+cr.GroupVersionKind().Group+"/one", "--operator-address", address)
	s.expectParts(text, "Ready", "ConfigMap/one  ready", "reconciles: not known: the operator at "+address+" answers 401", "extension-apiserver-authentication", "the resource was written by")
	if code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	token := strings.TrimSpace(s.Kubectl("create", "token", "default"))
	q := url.Values{"group": {cr.GroupVersionKind().Group}, "kind": {"Thing"}, "namespace": {s.Namespace}, "name": {"one"}}
	at := "https://" + address + history.Path + "?" + q.Encode()
	if got, body, _, err := newScraper().get(at, token); err != nil || got != http.StatusForbidden {
		t.Errorf("a token without rights gets %d: %s, %v", got, body, err)
	}
	s.Kubectl("create", "role", "reader", "--verb=get", "--resource=things."+cr.GroupVersionKind().Group)
	s.Kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount="+s.Namespace+":default")
	harness.Eventually(t, "a token with rights gets the report", func() error {
		got, body, _, err := newScraper().get(at, token)
		if err == nil && (got != http.StatusOK || !strings.Contains(body, `"triggers"`)) {
			err = fmt.Errorf("%d: %s", got, body)
		}
		return err
	})
}

func TestTheRequestsOfReconcilesAreThoseOfTheAuditLog(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "counted", `#Spec: text: string
components: config: objects: map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: text: cr.spec.text}
components: more: {when: cr.spec.text == "a", objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: cr.metadata.name, stringData: text: "x"}}
`)
	o := s.startSecure(p.Dir)
	address := o.Address(harness.MetricsServer)
	s.WaitUntilIdle()
	from := harness.MarkAudit(t)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	s.Patch(cr, map[string]any{"spec": map[string]any{"text": "b"}}) // the Secret is pruned
	s.WaitUntilIdle()
	// The resources that the operator has asked about; Events are sent in the background.
	audited := map[string]int{}
	for _, e := range s.OperatorRequests(from).WithoutListsAndWatches().Filter(func(e controlplane.AuditEvent) bool {
		return !harness.IsEvent(e) && !strings.HasSuffix(e.Resource, "reviews")
	}) {
		name := e.Resource
		if e.Subresource != "" {
			name += "/" + e.Subresource
		}
		audited[e.Verb+" "+name]++
	}
	counted := map[string]int{}
	r := s.report(s.AdminKubeconfig(), address, "things."+cr.GroupVersionKind().Group+"/one")
	if r.Total != int64(len(r.Reconciles)) {
		t.Fatalf("of %d reconciles, %d are known", r.Total, len(r.Reconciles))
	}
	for _, one := range r.Reconciles {
		for _, q := range one.Requests {
			verb := strings.Replace(q.Verb, "apply", "patch", 1)
			name, sub, is := strings.Cut(q.Resource, "/")
			name, _, _ = strings.Cut(name, ".")
			if is {
				name += "/" + sub
			}
			if verb != "list" {
				counted[verb+" "+name] += q.Count
			}
		}
	}
	a, _ := json.Marshal(audited)
	b, _ := json.Marshal(counted)
	t.Logf("%s", b)
	if string(a) != string(b) || counted["delete secrets"] != 1 || counted["patch things/status"] < 2 {
		t.Errorf("the audit log has %s, and the reconciles %s", a, b)
	}
}

func TestAfterARestartItSaysSinceWhenItKnows(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "restarted", heldBody)
	o := s.startSecure(p.Dir)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	resource := "things." + cr.GroupVersionKind().Group + "/one"
	first := o.Address(harness.MetricsServer)
	before := s.report(s.AdminKubeconfig(), first, resource)
	o.Stop()
	text, _ := s.operettaAs(s.AdminKubeconfig(), "explain", resource, "--operator-address", first)
	s.expectParts(text, "ConfigMap/one  ready", "reconciles: not known: the operator at "+first+" does not answer: ", "connection refused")

	began := time.Now().Add(-time.Second)
	address := s.startSecure(p.Dir).Address(harness.MetricsServer)
	var after history.Report
	harness.Eventually(t, "a reconcile after the start", func() error {
		if after = s.report(s.AdminKubeconfig(), address, resource); after.Total == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	if !after.Since.After(before.Since) || after.Since.Before(began) || !has(after, func(t history.Trigger) bool { return t.Cause == history.Start }) {
		t.Errorf("it says %v, and before the restart %v", after, before)
	}
	text, code := s.operettaAs(s.AdminKubeconfig(), "explain", resource, "--operator-address", address)
	s.expectParts(text, "reconciles  ", "start: the operator has listed the resource")
	if code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

func TestAWatchThatIsPendingIsListed(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "pendingwatch", heldBody)
	// It may read who may see, and not list ConfigMaps.
	s.RestrictOperator(p.RequiredRules()...)
	role := "reviewer-" + s.Namespace
	s.Kubectl("create", "clusterrole", role, "--verb=create", "--resource=subjectaccessreviews.authorization.k8s.io,tokenreviews.authentication.k8s.io")
	s.Kubectl("create", "clusterrolebinding", role, "--clusterrole="+role, "--user="+s.User)
	s.Kubectl("--namespace=kube-system", "create", "rolebinding", role, "--role=extension-apiserver-authentication-reader", "--user="+s.User)
	t.Cleanup(func() {
		_, _ = harness.Kubectl(cleanup(t), "delete", "clusterrole/"+role, "clusterrolebinding/"+role)
		_, _ = harness.Kubectl(cleanup(t), "--namespace=kube-system", "delete", "rolebinding/"+role)
	})
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	address := s.StartOperator(p.Dir, "--crds=leave", "--metrics-secure", harness.Alone).Address(harness.MetricsServer)
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{"text": "a"}))
	s.ExpectNotReady(cr, "KindUnreadable")
	resource := "things." + cr.GroupVersionKind().Group + "/one"
	text, _ := s.operettaAs(s.AdminKubeconfig(), "explain", resource, "--operator-address", address)
	t.Logf("operetta explain:\n%s", text)
	s.expectParts(text, "reconciles  ", "next: ", "watches: Thing", "watch pending: ConfigMap", "configmaps is forbidden")
}
