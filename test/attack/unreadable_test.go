package attack

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// expectFollowsItsSpec expects that a resource follows its spec, and says what it may not delete.
func expectFollowsItsSpec(s *harness.Env, cr *unstructured.Unstructured, text string, says ...string) {
	s.T.Helper()
	s.Patch(cr, harness.Spec(map[string]any{"text": text}))
	s.ExpectData(cr.GetName(), "text", text)
	says = append(says, `cannot get resource "secrets"`)
	took := harness.Within(s.T, 10*time.Second, "the permission to be named", func() error {
		u, err := harness.GetOrNil(s.T.Context(), cr)
		if err != nil || u == nil {
			return fmt.Errorf("reading it: %w", err)
		}
		return harness.HasCondition(u, "Ready", "False", "DeleteFailed", says...)
	})
	s.T.Logf("named after %s", took.Round(time.Millisecond))
}

// TestAttackAForgedInventoryOfUnreadableKindsHoldsNothing: the operator has exactly its roles, so it may not read what a forged inventory
// names: a Namespace, a Namespace that is said to be in the namespace of the resource, a ConfigMap of kube-system, and many Secrets.
func TestAttackAForgedInventoryOfUnreadableKindsHoldsNothing(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "forgedunread", helloBody)
	if err := harness.InstallCRDs(t.Context(), p.Dir); err != nil {
		t.Fatal(err)
	}
	role := s.RestrictOperator(append(p.RequiredRules(), configMaps())...)
	o := s.StartRestrictedOperator(p)
	mallory := s.Tenant("mallory", s.Namespace, things(p))
	theirs := s.Create(harness.Object("v1", "Secret", s.Namespace, "theirs-0"))
	cr := mallory.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)

	const secrets = 100
	entry := func(name, kind string, more map[string]any) any {
		e := map[string]any{"object": strings.ToLower(kind + name), "apiVersion": "v1", "kind": kind, "name": name, "uid": "01234567"}
		maps.Copy(e, more)
		return e
	}
	forged := []any{
		entry("default", "Namespace", map[string]any{"clusterScoped": true}),
		entry("kube-public", "Namespace", nil),
		entry("kube-root-ca.crt", "ConfigMap", map[string]any{"namespace": "kube-system"}),
	}
	for i := range secrets {
		forged = append(forged, entry(fmt.Sprint("theirs-", i), "Secret", nil))
	}
	from := harness.MarkAudit(t)
	if err := mallory.PatchStatus(cr, map[string]any{"status": map[string]any{"inventory": []any{map[string]any{"component": "old", "objects": forged}}}}); err != nil {
		t.Fatal(err)
	}
	expectFollowsItsSpec(s, cr, "b", "Secret "+s.Namespace+"/theirs-0")
	t.Log(s.ExpectEvent("shop", "OutOfReach", "default"))
	t.Log(s.ExpectEvent("shop", "OutOfReach", "kube-system/kube-root-ca.crt"))
	expectFollowsItsSpec(s, cr, "c")
	o.Stop()
	s.Patch(cr, harness.Spec(map[string]any{"text": "d"}))
	s.StartRestrictedOperator(p)
	s.ExpectData("shop", "text", "d")

	requests := s.OperatorRequests(from)
	of := func(resource, namespace string) int {
		return len(requests.Filter(func(e controlplane.AuditEvent) bool { return e.Resource == resource && e.Namespace == namespace }))
	}
	if n := of("namespaces", "") + of("namespaces", "kube-public") + of("configmaps", "kube-system"); n > 0 {
		t.Errorf("what is out of reach costs %d requests", n)
	}
	if n := of("secrets", s.Namespace); n == 0 || n > secrets {
		t.Errorf("%d Secrets that may not be read cost %d requests", secrets, n)
	}

	s.Patch(role, map[string]any{"rules": append(p.RequiredRules(), configMaps(), harness.Rule("", harness.AllVerbs, "secrets"))})
	s.ExpectObject(cr, "to forget what was forged", func(u *unstructured.Unstructured) error {
		if strings.Contains(fmt.Sprint(harness.Field(u, "status", "inventory")), "theirs") {
			return errors.New("it has it still")
		}
		return harness.Ready(u)
	})
	if left, err := harness.GetOrNil(t.Context(), theirs); left == nil || left.GetUID() != theirs.GetUID() {
		t.Errorf("the Secret of somebody else is gone: %v", err)
	}
}
