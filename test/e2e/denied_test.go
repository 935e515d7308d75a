package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestG4DeletionThatIsDeniedIsReportedAndTriedUntilItIsAllowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "denied", layered+`
components: middle: objects: kept: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: {
		name: "kept-\(cr.metadata.name)"
		labels: precious: "yes"
	}
}
`)
	s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{}))
	s.expectAllReady(cr)
	policy := s.denyDeletion()
	from := mark(t)
	s.delete(cr)
	t.Log(s.expectDeleteFailed(cr, "kept-shop", "precious things stay"))
	s.expectGone(s.ref("Secret", "top-shop-a"))
	if base := s.get("ConfigMap", "base-shop"); base.GetDeletionTimestamp() != nil {
		t.Error("what comes after the denied object is being deleted")
	}
	eventually(t, "further tries", func() error {
		tries := s.operatorRequests(from).about("configmaps").verbs("delete")
		if len(tries) < 3 {
			return fmt.Errorf("there were %d", len(tries))
		}
		return nil
	})
	if n := inventorySize(s.expectThat(cr, "to be kept", exists)); n != 2 {
		t.Errorf("the inventory has %d components, not those that are left", n)
	}
	s.delete(policy)
	began := time.Now()
	s.expectFinished(cr, layeredKinds...)
	t.Logf("gone %s after the policy", since(began))
}

// expectDeleteFailed waits until a resource that is being deleted says that an
// object cannot be.
func (s *site) expectDeleteFailed(cr *unstructured.Unstructured, parts ...string) string {
	s.t.Helper()
	u := s.expectThat(cr, "to report what cannot be deleted", func(u *unstructured.Unstructured) error {
		c := condition(u, "Ready")
		message, _ := c["message"].(string)
		if c["reason"] == "DeleteFailed" && containsAll(message, parts) {
			return nil
		}
		return fmt.Errorf("Ready is %v: %v, phase %v", c["reason"], message, field(u, "status", "phase"))
	})
	return condition(u, "Ready")["message"].(string)
}

// denyDeletion makes the API server refuse to delete the site's ConfigMaps with a
// label, and waits until it does. It returns the binding, which is what to delete.
func (s *site) denyDeletion() *unstructured.Unstructured {
	s.t.Helper()
	const version = "admissionregistration.k8s.io/v1"
	policy := object(version, "ValidatingAdmissionPolicy", "", s.namespace)
	policy.Object["spec"] = map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.namespace}},
			"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"DELETE"},
			}},
		},
		"validations": []any{map[string]any{
			"expression": `!has(oldObject.metadata.labels) || !("precious" in oldObject.metadata.labels)`, "message": "precious things stay",
		}},
	}
	binding := object(version, "ValidatingAdmissionPolicyBinding", "", s.namespace)
	binding.Object["spec"] = map[string]any{"policyName": s.namespace, "validationActions": []any{"Deny"}}
	for _, u := range []*unstructured.Unstructured{policy, binding} {
		s.create(u)
		s.t.Cleanup(func() { _ = world.admin.Delete(context.WithoutCancel(s.t.Context()), u) })
	}
	eventually(s.t, "the policy to have effect", func() error {
		probe := s.configMap("probe", nil)
		probe.SetLabels(map[string]string{"precious": "yes"})
		if err := world.admin.Create(s.t.Context(), probe); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if err := world.admin.Delete(s.t.Context(), probe); err == nil {
			return errNotYet
		}
		return nil
	})
	s.t.Cleanup(func() { _ = world.admin.Delete(context.WithoutCancel(s.t.Context()), s.ref("ConfigMap", "probe")) })
	return binding
}
