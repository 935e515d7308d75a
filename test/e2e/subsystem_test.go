package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"operetta.dev/test/controlplane"
)

const parent = `
#Spec: text: string

components: child: objects: child: {
	apiVersion: "child.example.com/v1"
	kind:       "Thing"
	metadata: name: "child-\(cr.metadata.name)"
	spec: text: cr.spec.text
}
components: after: {
	dependsOn: child: {}
	objects: settings: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: "after-\(cr.metadata.name)"
		stringData: text: cr.spec.text
	}
}
`

const child = `
#Spec: text: string

inputs: gate: {apiVersion: "v1", kind: "ConfigMap", name: "gate-\(cr.spec.text)"}
components: first: objects: settings: {
	apiVersion: "v1"
	kind:       "ServiceAccount"
	metadata: name: "first"
}
components: second: {
	dependsOn: first: {}
	objects: settings: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "second"
		data: gate: inputs.gate.object.data.open
	}
}
`

func TestSubsystemIsAwaitedAndDeletedInOrderThroughBoth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	above, below := newSmall(t, "parent", parent), newSmall(t, "child", child)
	s.operate(above.dir, below.dir)
	cr := s.create(above.thing(s, "shop", map[string]any{"text": "a"}))
	kid := below.thing(s, "child-shop", nil)
	s.expectNotReady(kid, "WaitingForValue", "inputs.gate.object")
	t.Log(s.expectNotReady(cr, "NotReady", "child: "))
	if u, err := s.find("Secret", "after-shop"); u != nil || err != nil {
		t.Errorf("what depends on the child exists before it is Ready (error %v)", err)
	}
	s.create(s.configMap("gate-a", map[string]any{"open": "a"}))
	s.expectAllReady(kid)
	s.expectAllReady(cr)
	secret := s.get("Secret", "after-shop").GetResourceVersion()

	// The child's Ready of its earlier generation counts no more.
	s.patch(cr, spec(map[string]any{"text": "b"}))
	t.Log(s.expectNotReady(cr, "NotReady", "child: "))
	if s.get("Secret", "after-shop").GetResourceVersion() != secret {
		t.Error("what depends on the child was changed before it was Ready again")
	}
	s.create(s.configMap("gate-b", map[string]any{"open": "b"}))
	s.expectAllReady(cr)
	s.expectData("second", "gate", "b")

	from := mark(t)
	s.delete(cr)
	s.expectFinished(cr, layeredKinds...)
	s.expectGone(kid)
	var order []string
	for _, e := range s.operatorRequests(from).verbs("delete").only(func(e controlplane.AuditEvent) bool { return e.Namespace == s.namespace }) {
		order = append(order, e.Resource)
	}
	if got := fmt.Sprint(order); got != "[secrets things configmaps serviceaccounts]" {
		t.Errorf("deleted in the order %s", got)
	}
}

// TestSubsystemOfAnotherProcessIsAwaitedAsWell: the operator of the child starts late. Until
// then its resource exists without a status, which looks ready to everybody else.
func TestSubsystemOfAnotherProcessIsAwaitedAsWell(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	above, below := newSmall(t, "above", strings.ReplaceAll(parent, "child.example.com", "below.example.com")), newSmall(t, "below", child)
	if err := installCRDs(t.Context(), below.dir); err != nil {
		t.Fatal(err)
	}
	s.operate(above.dir)
	s.create(s.configMap("gate-a", map[string]any{"open": "a"}))
	cr := s.create(above.thing(s, "shop", map[string]any{"text": "a"}))
	t.Log(s.expectNotReady(cr, "NotReady", "child: ", "its operator has not reported on it yet"))
	if u, err := s.find("Secret", "after-shop"); u != nil || err != nil {
		t.Errorf("what depends on the child exists before its operator has seen that (error %v)", err)
	}
	file := filepath.Join(t.TempDir(), "other.yaml")
	writeFile(t, file, "apiVersion: above.example.com/v1\nkind: Thing\nmetadata: {name: other}\nspec: {text: a}\n")
	out, err := s.rehearse(above.dir, "-f", file)
	if err != nil || !strings.Contains(out, "+ Thing "+s.namespace+"/child-other") || strings.Contains(out, "after-other") {
		t.Errorf("a dry run says (%v):\n%s\nwant that it ends with the child", err, out)
	}

	s.operate(below.dir)
	s.expectAllReady(below.thing(s, "child-shop", nil))
	s.expectAllReady(cr)
	s.get("Secret", "after-shop")
}
