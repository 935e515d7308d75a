package e2e

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// switchedBody has a component in the middle that can be switched off. Components that depend on it,
// declared or by a reference, are excluded with it; those with an optional edge stay.
const switchedBody = `
live: _
#Spec: {middle: bool | *true, text: string | *"a"}

components: base: objects: o: _map & {metadata: name: "base"}
components: middle: {
	when: cr.spec.middle
	dependsOn: base: {}
	objects: o: {apiVersion: "v1", kind: "ServiceAccount", metadata: name: "middle"}
	outputs: uid: live.middle.o.metadata.uid
}
components: top: {
	dependsOn: middle: {}
	objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "top"}
}
components: user: objects: o: {apiVersion: "v1", kind: "Service", metadata: name: "user", spec: {type: "ExternalName", externalName: components.middle.outputs.uid}}
components: beside: {
	dependsOn: middle: optional: true
	objects: o: _map & {metadata: name: "beside"}
}
_map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: string, ...}
`

func TestSwitchingOffDeletesDependentsFirstAndWaitsForTheirAbsence(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "switched", switchedBody)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	top := s.Ref("Secret", "top")
	s.Patch(top, map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/hold"}}})
	s.WaitUntilIdle()

	from := harness.MarkAudit(t)
	s.Patch(cr, harness.Spec(map[string]any{"middle": false}))
	s.ExpectObject(top, "to be on its way out", func(u *unstructured.Unstructured) error {
		if u == nil || u.GetDeletionTimestamp() == nil {
			return errors.New("it is not")
		}
		return nil
	})
	s.ExpectGone(s.Ref("Service", "user"))
	s.WaitUntilIdle()
	if u := s.Get("ServiceAccount", "middle"); u.GetDeletionTimestamp() != nil {
		t.Error("what top depends on is being deleted, though top is still there")
	}
	s.Patch(top, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	s.ExpectGone(s.Ref("ServiceAccount", "middle"))
	s.ExpectResourceReady(cr)
	var order []string
	for _, e := range s.OperatorRequests(from).WithVerbs("delete").Filter(func(e controlplane.AuditEvent) bool { return e.Namespace == s.Namespace && e.Code == 200 }) {
		order = append(order, e.Resource)
	}
	if got := strings.Join(order, " "); got != "secrets services serviceaccounts" && got != "services secrets serviceaccounts" {
		t.Errorf("deleted in the order %s", got)
	}
	for _, name := range []string{"base", "beside"} {
		s.ExpectObject(s.Ref("ConfigMap", name), "to exist", harness.Exists)
	}

	s.Patch(cr, harness.Spec(map[string]any{"middle": true}))
	s.ExpectResourceReady(cr)
	s.ExpectObject(top, "to be back", harness.Exists)
}

// chatty is a subsystem with a hook before deletion; talk renders it.
const (
	chatty = `
#Spec: text: string

components: said: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "said", data: text: cr.spec.text}
hooks: afterVerify: shout: objects: job: {
	apiVersion: "batch/v1"
	kind:       "Job"
	metadata: {name: "shout", labels: text: cr.spec.text}
	spec: template: spec: {restartPolicy: "Never", containers: [{name: "main", image: "busybox:1", args: [cr.spec.text]}]}
}
`
	talk = `
#Spec: text: string

components: child: objects: child: {apiVersion: "chatty.example.com/v1", kind: "Thing", metadata: name: "child", spec: text: cr.spec.text}
`
)

func TestKubectlWaitForReadyIsNotEarlyForSubsystemsAndHooks(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	above, below := newTestPackage(t, "talk", talk), newTestPackage(t, "chatty", chatty)
	s.StartOperator(above.Dir, below.Dir)
	cr := s.Create(above.Thing(s.Env, "shop", map[string]any{"text": "a"}))
	for i, text := range []string{"a", "b", "c", "d"} {
		if i > 0 {
			s.Patch(cr, harness.Spec(map[string]any{"text": text}))
		}
		s.Kubectl("wait", "--for=condition=Ready", "--timeout=90s", "things.talk.example.com/shop")
		if got := harness.Field(s.Get("ConfigMap", "said"), "data", "text"); got != text {
			t.Fatalf("kubectl wait returned while the subsystem says %v, not %s", got, text)
		}
		done := 0
		for _, job := range s.List("batch/v1", "Job") {
			if job.GetLabels()["text"] == text && harness.Field(&job, "status", "succeeded") == int64(1) {
				done++
			}
		}
		if done != 1 {
			t.Fatalf("kubectl wait returned while %d Jobs have said %s, not one", done, text)
		}
	}
}
