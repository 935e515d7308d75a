package attack

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reportingBody is a package with a status field of its author.
const reportingBody = helloBody + `
status: {
	note: cr.spec.text
	count?: int
}
`

// installPolicies applies the output of `operetta install` for a package, for the test's namespace and
// operator.
func installPolicies(s *harness.Env, p *harness.TestPackage) {
	s.T.Helper()
	installPoliciesFor(s, p, s.User)
}

// installPoliciesFor is installPolicies for an operator that acts as a user.
func installPoliciesFor(s *harness.Env, p *harness.TestPackage, user string) {
	s.T.Helper()
	cmd := exec.CommandContext(s.T.Context(), harness.Suite.Operetta, "install", p.Dir, "--namespace", s.Namespace, "--operator-user", user)
	out, err := cmd.Output()
	if err != nil {
		s.T.Fatal(err, harness.StderrOf(err))
	}
	file := filepath.Join(s.T.TempDir(), "install.yaml")
	harness.WriteFile(s.T, file, string(out))
	s.Kubectl("apply", "--server-side", "--force-conflicts", "-f", file)
}

// awaitPolicy waits until the API server rejects a creation by a tenant, because a policy takes effect
// a moment after it is written.
func awaitPolicy(x *harness.Tenant, u *unstructured.Unstructured) {
	x.T.Helper()
	harness.Eventually(x.T, "the policy to hold", func() error {
		err := x.Client.Create(x.T.Context(), u.DeepCopy(), client.DryRunAll)
		if apierrors.IsForbidden(err) {
			x.T.Log(err)
			return nil
		}
		return fmt.Errorf("it could be created: %w", err)
	})
}

// Nothing but a log and an event can say that a policy names another user than the operator's.
func TestAnOperatorThatThePoliciesDoNotNameSaysSo(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	s.ExpectRefusals("the policies name another account", "ValidatingAdmissionPolicy")
	p := harness.NewTestPackage(t, "anotheruser", reportingBody)
	installPoliciesFor(s, p, "alice")
	tenant := s.Tenant("tenant", s.Namespace, things(p))
	var cr *unstructured.Unstructured
	harness.Eventually(t, "the definition to be served", func() error {
		cr = p.Thing(s, "shop", nil)
		return tenant.Client.Create(t.Context(), cr)
	})
	harness.Eventually(t, "the policy to hold", func() error {
		err := tenant.Client.Status().Patch(t.Context(), cr.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status": {"phase": "Ready"}}`)),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{"All"}}})
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("the phase could be written: %w", err)
	})
	o := s.StartOperator(p.Dir)
	t.Log(s.ExpectEvent("shop", "StatusForbidden", "which is alice", "--operator-user"))
	o.ExpectLog("the operator may not write the status", "kubectl auth whoami")
	installPolicies(s, p)
	s.ExpectResourceReady(cr)
}

// In TestAttackAForgedStatusUnderThePolicies the attacker has all rights on the kind, including its
// status, and writes the fields that the operator relies on.
func TestAttackAForgedStatusUnderThePolicies(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "forgedunder", reportingBody)
	s.StartOperator(p.Dir)
	mallory := s.Tenant("mallory", s.Namespace, things(p), patches())
	cr := mallory.Create(p.Thing(s, "shop", nil))
	s.ExpectResourceReady(cr)
	forged := map[string]any{"inventory": []any{map[string]any{"component": "old", "objects": []any{map[string]any{
		"object": "victim", "apiVersion": "v1", "kind": "Secret", "name": "victim", "uid": "00000000",
	}}}}}
	installPolicies(s, p)
	harness.Eventually(t, "the policy to hold", func() error {
		err := mallory.Client.Status().Patch(t.Context(), cr.DeepCopy(), client.RawPatch("application/merge-patch+json", harness.Encode(t, map[string]any{"status": forged})),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{"All"}}})
		if apierrors.IsForbidden(err) {
			t.Log(err)
			return nil
		}
		return fmt.Errorf("the inventory could be written: %w", err)
	})
	for name, status := range map[string]any{
		"an inventory":       forged,
		"no inventory":       map[string]any{"inventory": nil},
		"a phase":            map[string]any{"phase": "Forged"},
		"no status":          nil,
		"a package":          map[string]any{"package": map[string]any{"name": "evil"}},
		"its conditions":     map[string]any{"conditions": nil},
		"a condition":        map[string]any{"conditions": []any{condition("Ready")}},
		"hooks that are run": map[string]any{"hooks": []any{map[string]any{"name": "x"}}},
	} {
		if err := mallory.PatchStatus(cr, map[string]any{"status": status}); !apierrors.IsForbidden(err) {
			t.Errorf("mallory writes %s: %v", name, err)
		}
	}
	if out, err := mallory.Kubectl(context.Background(), "replace", "--subresource=status", "-f", statusFile(t, s, cr)); err == nil {
		t.Errorf("mallory replaces the status: %s", out)
	}
	// The policy allows changes of the author's own fields.
	if err := mallory.PatchStatus(cr, map[string]any{"status": map[string]any{"count": 3}}); err != nil {
		t.Errorf("the author's own field: %v", err)
	}
	// It allows conditions of types that the engine does not use.
	theirs := harness.Encode(t, []any{map[string]any{"op": "add", "path": "/status/conditions/0", "value": condition("Billed")}})
	if err := mallory.Client.Status().Patch(t.Context(), cr.DeepCopy(), client.RawPatch("application/json-patch+json", theirs)); err != nil {
		t.Errorf("a condition of another type: %v", err)
	}
	// A status that is sent with a creation is dropped.
	born := p.Thing(s, "born", nil)
	born.Object["status"] = forged
	if mallory.Create(born); harness.Field(born, "status") != nil {
		t.Errorf("a resource is created with the status %v", harness.Field(born, "status"))
	}
	s.ExpectResourceReady(born)
	// The tenant can edit and the operator can write the status, as before.
	if err := mallory.Patch(cr, harness.Spec(map[string]any{"text": "edited"})); err != nil {
		t.Fatal(err)
	}
	s.ExpectData("shop", "text", "edited")
	s.ExpectResourceReady(cr)
}

// condition returns a condition of a type.
func condition(name string) map[string]any {
	return map[string]any{"type": name, "status": "True", "reason": "Forged", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

// statusFile writes a resource with a forged inventory to a file.
func statusFile(t *testing.T, s *harness.Env, cr *unstructured.Unstructured) string {
	t.Helper()
	u := s.ExpectObject(cr, "to be there", harness.Exists)
	u.Object["status"].(map[string]any)["inventory"] = []any{}
	file := filepath.Join(t.TempDir(), "status.json")
	harness.WriteFile(t, file, string(harness.Encode(t, u.Object)))
	return file
}
