package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAuditLogHoldsTheRequestsOfAUser(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Audit: true})
	k, operator := admin(t, c), as(t, c, "operator")
	k.run("create", "clusterrolebinding", "operator", "--clusterrole=edit", "--user=operator")
	mark, err := c.MarkAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.run("create", "configmap", "by-admin")
	operator.run("create", "deployment", "web", "--image=any/name")
	_, _ = operator.try("get", "nodes")

	want := []AuditEvent{
		{User: "operator", Verb: "create", Group: "apps", Resource: "deployments", Namespace: "default", Name: "web",
			RequestURI: "/apis/apps/v1/namespaces/default/deployments?fieldManager=kubectl-create&fieldValidation=Strict", Code: 201},
		{User: "operator", Verb: "list", Resource: "nodes", RequestURI: "/api/v1/nodes?limit=500", Code: 403,
			Message: `nodes is forbidden: User "operator" cannot list resource "nodes" in API group "" at the cluster scope`, Forbidden: true},
	}
	events := auditEvents(t, c, mark, "operator")
	var got []AuditEvent
	for _, e := range events {
		if e.Resource == "" {
			continue // discovery
		}
		if e.AuditID == "" || time.Since(e.Time) > time.Minute || !strings.HasPrefix(e.UserAgent, "kubectl/") {
			t.Errorf("event %+v lacks its id, time or user agent", e)
		}
		e.AuditID, e.Time, e.UserAgent = "", time.Time{}, ""
		got = append(got, e)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("events:\n%+v\nnot:\n%+v", got, want)
	}
}

func TestAuditEventsAfterAMarkAreOnlyThose(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Audit: true})
	operator := as(t, c, "operator", mastersGroup)
	operator.run("create", "configmap", "before")
	mark, err := c.MarkAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := auditEvents(t, c, mark, "operator"); len(got) != 0 {
		t.Errorf("events of the idle user: %+v", got)
	}
	operator.run("create", "configmap", "after")
	created := func(e AuditEvent) bool { return e.Verb == "create" && e.Name == "after" }
	if got := auditEvents(t, c, mark, "operator"); !slices.ContainsFunc(got, created) {
		t.Errorf("events after the mark: %+v", got)
	}
	everyone := auditEvents(t, c, 0)
	users := map[string]bool{}
	for _, e := range everyone {
		users[e.User] = true
	}
	if !users["operator"] || !users["system:kube-scheduler"] || users[controlPlaneUser] {
		t.Errorf("users: %v", users)
	}
}

func TestEachRequestIsOneAuditEventAlsoAWatchThatIsOpen(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Audit: true})
	operator := as(t, c, "operator", mastersGroup)
	watch := exec.CommandContext(t.Context(), c.Kubectl(), "--kubeconfig="+operator.kubeconfig, "get", "secrets", "--watch")
	watch.Env = append(os.Environ(), "HOME="+t.TempDir())
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	expect := func() error {
		count, ids := 0, map[string]bool{}
		events, err := c.AuditEvents(t.Context(), 0, "operator")
		for _, e := range events {
			if ids[e.AuditID] {
				t.Errorf("request is in the log twice: %+v", e)
			}
			ids[e.AuditID] = true
			if e.Verb == "watch" && e.Resource == "secrets" {
				count++
			}
		}
		if err == nil && count != 1 {
			err = fmt.Errorf("%d watches", count)
		}
		return err
	}
	eventually(t, expect)
	if err := watch.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = watch.Wait()
	// The end of the watch is no other request, also when the server has ended too.
	if err := c.StopPart(APIServer); err != nil {
		t.Fatal(err)
	}
	if err := expect(); err != nil {
		t.Error(err)
	}
}

func TestAuditThatIsOffSaysHowToTurnItOn(t *testing.T) {
	t.Parallel()
	c := start(t, Options{})
	_, err := c.AuditEvents(t.Context(), 0)
	expectError(t, "events", err, errNoAudit)
	_, err = c.MarkAudit(t.Context())
	expectError(t, "mark", err, errNoAudit)
	if _, err := os.Stat(c.AuditLog()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("log: %v", err)
	}
}

func auditEvents(t *testing.T, c *ControlPlane, since AuditMark, users ...string) []AuditEvent {
	t.Helper()
	events, err := c.AuditEvents(t.Context(), since, users...)
	if err != nil {
		t.Fatal(err)
	}
	return events
}
