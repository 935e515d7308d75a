package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
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
	const version = "admissionregistration.k8s.io/v1"
	policy := harness.Object(version, "ValidatingAdmissionPolicy", "", s.Namespace)
	policy.Object["spec"] = map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.Namespace}},
			"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"DELETE"},
			}},
		},
		"validations": []any{map[string]any{
			"expression": `!has(oldObject.metadata.labels) || !("precious" in oldObject.metadata.labels)`, "message": "precious things stay",
		}},
	}
	binding := harness.Object(version, "ValidatingAdmissionPolicyBinding", "", s.Namespace)
	binding.Object["spec"] = map[string]any{"policyName": s.Namespace, "validationActions": []any{"Deny"}}
	for _, u := range []*unstructured.Unstructured{policy, binding} {
		s.Create(u)
		s.T.Cleanup(func() { _ = harness.Suite.Admin.Delete(context.WithoutCancel(s.T.Context()), u) })
	}
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
