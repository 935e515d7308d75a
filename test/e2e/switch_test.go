package e2e

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
)

// switched has a component in the middle that can be switched off: what depends on it, in
// words or by a reference, goes with it, and what only comes after it stays.
const switched = `
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
	s := newSite(t)
	p := newSmall(t, "switched", switched)
	s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{}))
	s.expectAllReady(cr)
	top := s.ref("Secret", "top")
	s.patch(top, map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/hold"}}})
	s.settle()

	from := mark(t)
	s.patch(cr, spec(map[string]any{"middle": false}))
	s.expectThat(top, "to be on its way out", func(u *unstructured.Unstructured) error {
		if u == nil || u.GetDeletionTimestamp() == nil {
			return errors.New("it is not")
		}
		return nil
	})
	s.expectGone(s.ref("Service", "user"))
	s.settle()
	if u := s.get("ServiceAccount", "middle"); u.GetDeletionTimestamp() != nil {
		t.Error("what top depends on is being deleted, though top is still there")
	}
	s.patch(top, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	s.expectGone(s.ref("ServiceAccount", "middle"))
	s.expectAllReady(cr)
	var order []string
	for _, e := range s.operatorRequests(from).verbs("delete").only(func(e controlplane.AuditEvent) bool { return e.Namespace == s.namespace && e.Code == 200 }) {
		order = append(order, e.Resource)
	}
	if got := strings.Join(order, " "); got != "secrets services serviceaccounts" && got != "services secrets serviceaccounts" {
		t.Errorf("deleted in the order %s", got)
	}
	for _, name := range []string{"base", "beside"} {
		s.expectThat(s.ref("ConfigMap", name), "to exist", exists)
	}

	s.patch(cr, spec(map[string]any{"middle": true}))
	s.expectAllReady(cr)
	s.expectThat(top, "to be back", exists)
}

// chatty is a subsystem whose last word is a hook; talk renders it.
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
	s := newSite(t)
	above, below := newSmall(t, "talk", talk), newSmall(t, "chatty", chatty)
	s.operate(above.dir, below.dir)
	cr := s.create(above.thing(s, "shop", map[string]any{"text": "a"}))
	for i, text := range []string{"a", "b", "c", "d"} {
		if i > 0 {
			s.patch(cr, spec(map[string]any{"text": text}))
		}
		s.kubectl("wait", "--for=condition=Ready", "--timeout=90s", "things.talk.example.com/shop")
		if got := field(s.get("ConfigMap", "said"), "data", "text"); got != text {
			t.Fatalf("kubectl wait returned while the subsystem says %v, not %s", got, text)
		}
		done := 0
		for _, job := range s.list("batch/v1", "Job") {
			if job.GetLabels()["text"] == text && field(&job, "status", "succeeded") == int64(1) {
				done++
			}
		}
		if done != 1 {
			t.Fatalf("kubectl wait returned while %d Jobs have said %s, not one", done, text)
		}
	}
}
