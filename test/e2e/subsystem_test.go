package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

const parentBody = `
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

const childBody = `
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
	s := newEnv(t)
	above, below := newTestPackage(t, "parent", parentBody), newTestPackage(t, "child", childBody)
	s.StartOperator(above.Dir, below.Dir)
	cr := s.Create(above.Thing(s.Env, "shop", map[string]any{"text": "a"}))
	kid := below.Thing(s.Env, "child-shop", nil)
	s.ExpectNotReady(kid, "WaitingForValue", "inputs.gate.object")
	t.Log(s.ExpectNotReady(cr, "NotReady", "child: "))
	if u, err := s.Lookup("Secret", "after-shop"); u != nil || err != nil {
		t.Errorf("what depends on the child exists before it is Ready (error %v)", err)
	}
	s.Create(s.ConfigMap("gate-a", map[string]any{"open": "a"}))
	s.ExpectResourceReady(kid)
	s.ExpectResourceReady(cr)
	secret := s.Get("Secret", "after-shop").GetResourceVersion()

	// A Ready condition for an earlier generation of the child does not count.
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	t.Log(s.ExpectNotReady(cr, "NotReady", "child: "))
	if s.Get("Secret", "after-shop").GetResourceVersion() != secret {
		t.Error("what depends on the child was changed before it was Ready again")
	}
	s.Create(s.ConfigMap("gate-b", map[string]any{"open": "b"}))
	s.ExpectResourceReady(cr)
	s.ExpectData("second", "gate", "b")

	from := harness.MarkAudit(t)
	s.Delete(cr)
	s.ExpectFinished(cr, layeredKinds...)
	s.ExpectGone(kid)
	var order []string
	for _, e := range s.OperatorRequests(from).WithVerbs("delete").Filter(func(e controlplane.AuditEvent) bool { return e.Namespace == s.Namespace }) {
		order = append(order, e.Resource)
	}
	if got := fmt.Sprint(order); got != "[secrets things configmaps serviceaccounts]" {
		t.Errorf("deleted in the order %s", got)
	}
}

// TestSubsystemOfAnotherProcessIsAwaitedAsWell starts the operator of the child late. Until then the
// child exists without a status, which other tools take for ready.
func TestSubsystemOfAnotherProcessIsAwaitedAsWell(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	above, below := newTestPackage(t, "above", strings.ReplaceAll(parentBody, "child.example.com", "below.example.com")), newTestPackage(t, "below", childBody)
	if err := harness.InstallCRDs(t.Context(), below.Dir); err != nil {
		t.Fatal(err)
	}
	s.StartOperator(above.Dir)
	s.Create(s.ConfigMap("gate-a", map[string]any{"open": "a"}))
	cr := s.Create(above.Thing(s.Env, "shop", map[string]any{"text": "a"}))
	t.Log(s.ExpectNotReady(cr, "NotReady", "child: ", "its operator has not reported on it yet"))
	if u, err := s.Lookup("Secret", "after-shop"); u != nil || err != nil {
		t.Errorf("what depends on the child exists before its operator has seen that (error %v)", err)
	}
	file := filepath.Join(t.TempDir(), "other.yaml")
	harness.WriteFile(t, file, "apiVersion: above.example.com/v1\nkind: Thing\nmetadata: {name: other}\nspec: {text: a}\n")
	out, err := s.dryRun(above.Dir, "-f", file)
	if err != nil || !strings.Contains(out, "+ Thing "+s.Namespace+"/child-other") || strings.Contains(out, "after-other") {
		t.Errorf("a dry run says (%v):\n%s\nwant that it ends with the child", err, out)
	}

	s.StartOperator(below.Dir)
	s.ExpectResourceReady(below.Thing(s.Env, "child-shop", nil))
	s.ExpectResourceReady(cr)
	s.Get("Secret", "after-shop")
}
