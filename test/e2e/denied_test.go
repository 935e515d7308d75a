package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestG4DeletionThatIsDeniedIsReportedAndTriedUntilItIsAllowed(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "denied", layeredBody+`
components: middle: objects: kept: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: {
		name: "kept-\(cr.metadata.name)"
		labels: precious: "yes"
	}
}
`)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	policy := s.denyDeletion()
	from := harness.MarkAudit(t)
	s.Delete(cr)
	t.Log(s.expectDeleteFailed(cr, "kept-shop", "precious things stay"))
	s.ExpectGone(s.Ref("Secret", "top-shop-a"))
	if base := s.Get("ConfigMap", "base-shop"); base.GetDeletionTimestamp() != nil {
		t.Error("what comes after the denied object is being deleted")
	}
	harness.Eventually(t, "further tries", func() error {
		tries := s.OperatorRequests(from).OfResource("configmaps").WithVerbs("delete")
		if len(tries) < 3 {
			return fmt.Errorf("there were %d", len(tries))
		}
		return nil
	})
	if n := inventorySize(s.ExpectObject(cr, "to be kept", harness.Exists)); n != 2 {
		t.Errorf("the inventory has %d components, not those that are left", n)
	}
	s.Delete(policy)
	began := time.Now()
	s.ExpectFinished(cr, layeredKinds...)
	t.Logf("gone %s after the policy", harness.Elapsed(began))
}

// expectDeleteFailed waits until a resource that is being deleted reports that an object cannot be
// deleted.
func (s *env) expectDeleteFailed(cr *unstructured.Unstructured, parts ...string) string {
	s.T.Helper()
	u := s.ExpectObject(cr, "to report what cannot be deleted", func(u *unstructured.Unstructured) error {
		c := harness.Condition(u, "Ready")
		message, _ := c["message"].(string)
		if c["reason"] == "DeleteFailed" && harness.ContainsAll(message, parts) {
			return nil
		}
		return fmt.Errorf("Ready is %v: %v, phase %v", c["reason"], message, harness.Field(u, "status", "phase"))
	})
	return harness.Condition(u, "Ready")["message"].(string)
}

// denyDeletion makes the API server deny deletions of the test's ConfigMaps with a label, and waits
// until it does. It returns the policy binding; deleting it ends the denial.
func (s *env) denyDeletion() *unstructured.Unstructured {
	s.T.Helper()
	binding := s.denyConfigMaps("DELETE", `!has(oldObject.metadata.labels) || !("precious" in oldObject.metadata.labels)`, "precious things stay")
	harness.Eventually(s.T, "the policy to have effect", func() error {
		probe := s.ConfigMap("probe", nil)
		probe.SetLabels(map[string]string{"precious": "yes"})
		if err := harness.Suite.Admin.Create(s.T.Context(), probe); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := harness.Suite.Admin.Delete(s.T.Context(), probe); err == nil {
			return harness.ErrNotYet
		}
		return nil
	})
	s.T.Cleanup(func() {
		_ = harness.Suite.Admin.Delete(context.WithoutCancel(s.T.Context()), s.Ref("ConfigMap", "probe"))
	})
	return binding
}

// denyConfigMaps makes the API server deny an operation on the test's ConfigMaps unless an expression is true. It returns the
// policy binding; deleting it ends the denial.
func (s *env) denyConfigMaps(operation, expression, message string) *unstructured.Unstructured {
	s.T.Helper()
	const version = "admissionregistration.k8s.io/v1"
	name := s.Namespace + "-" + strings.ToLower(operation)
	policy := harness.Object(version, "ValidatingAdmissionPolicy", "", name)
	policy.Object["spec"] = map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.Namespace}},
			"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{operation},
			}},
		},
		"validations": []any{map[string]any{"expression": expression, "message": message}},
	}
	binding := harness.Object(version, "ValidatingAdmissionPolicyBinding", "", name)
	binding.Object["spec"] = map[string]any{"policyName": name, "validationActions": []any{"Deny"}}
	for _, u := range []*unstructured.Unstructured{policy, binding} {
		s.Create(u)
		s.T.Cleanup(func() { _ = harness.Suite.Admin.Delete(context.WithoutCancel(s.T.Context()), u) })
	}
	return binding
}

// TestAPolicyThatDeniesAnUpdateOrANameCostsNoObject: an object with the policy recreateOnImmutable is deleted only for what the
// validation of its kind refuses, and only if admission lets the API server create it again under its name.
func TestAPolicyThatDeniesAnUpdateOrANameCostsNoObject(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "costly", `
#Spec: text: string
_map: {apiVersion: "v1", kind: "ConfigMap", data: text: cr.spec.text}
components: {
	frozen: {objects: o: _map & {metadata: name: "frozen-\(cr.metadata.name)"}, policy: o: apply: "recreateOnImmutable"}
	fixed: {objects: o: _map & {metadata: name: "fixed-\(cr.metadata.name)", immutable: true}, policy: o: apply: "recreateOnImmutable"}
	free: {objects: o: _map & {metadata: name: "free-\(cr.metadata.name)", immutable: true}, policy: o: apply: "recreateOnImmutable"}
}
`)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	was := map[string]types.UID{}
	for _, name := range []string{"frozen-shop", "fixed-shop", "free-shop"} {
		was[name] = s.Get("ConfigMap", name).GetUID()
	}
	thaw := s.denyConfigMaps("UPDATE", `object.metadata.name != "frozen-shop" || object.data == oldObject.data`, "not before Monday")
	allow := s.denyConfigMaps("CREATE", `object.metadata.name != "fixed-shop"`, "nobody makes this one")
	harness.Eventually(t, "the policies to have effect", func() error {
		denied := s.Get("ConfigMap", "frozen-shop")
		denied.Object["data"] = map[string]any{"text": "probe"}
		made := s.ConfigMap("fixed-shop", nil)
		if harness.Suite.Admin.Update(t.Context(), denied, client.DryRunAll) == nil || !apierrors.IsInvalid(harness.Suite.Admin.Create(t.Context(), made, client.DryRunAll)) {
			return harness.ErrNotYet
		}
		return nil
	})
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectObject(cr, "to say what is denied", func(u *unstructured.Unstructured) error {
		text := fmt.Sprint(harness.Field(u, "status", "components"))
		if !harness.ContainsAll(text, []string{"not before Monday", "could not be created anew", "nobody makes this one"}) {
			return fmt.Errorf("it says %q", text)
		}
		return nil
	})
	s.ExpectObject(s.Ref("ConfigMap", "free-shop"), "to be recreated", func(u *unstructured.Unstructured) error {
		if u.GetUID() == was["free-shop"] {
			return harness.ErrNotYet
		}
		return nil
	})
	for _, name := range []string{"frozen-shop", "fixed-shop"} {
		if u := s.Get("ConfigMap", name); u.GetUID() != was[name] || u.GetDeletionTimestamp() != nil {
			t.Errorf("%s was deleted", name)
		}
	}
	s.Delete(thaw)
	s.Delete(allow)
	harness.Eventually(t, "the policies to have no effect", func() error {
		thawed := s.Get("ConfigMap", "frozen-shop")
		thawed.Object["data"] = map[string]any{"text": "probe"}
		if err := harness.Suite.Admin.Update(t.Context(), thawed, client.DryRunAll); err != nil {
			return err
		}
		if err := harness.Suite.Admin.Create(t.Context(), s.ConfigMap("fixed-shop", nil), client.DryRunAll); !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("a creation is answered with %w", err)
		}
		return nil
	})
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectResourceReady(cr)
	s.ExpectData("frozen-shop", "text", "c")
	s.ExpectData("fixed-shop", "text", "c")
}
