package e2e

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// repairLimit is the time within which drift has to be repaired.
const repairLimit = 5 * time.Second

// driftCases are a change of a rendered field for each kind, and the check that it was reverted.
var driftCases = []struct {
	kind, resource string
	patch          map[string]any
	field          []string
	want           any
}{
	{"ConfigMap", "configmaps", map[string]any{"data": map[string]any{"index.html": "defaced"}}, []string{"data", "index.html"}, "hello"},
	{"Secret", "secrets", map[string]any{"data": map[string]any{"TOKEN": "AAAA"}}, []string{"data", "TOKEN"}, "b3BlbnNlc2FtZQ=="},
	{"ServiceAccount", "serviceaccounts", map[string]any{"automountServiceAccountToken": true}, []string{"automountServiceAccountToken"}, false},
	{"Deployment", "deployments", harness.Spec(map[string]any{"template": map[string]any{"spec": map[string]any{"serviceAccountName": "default"}}}), []string{"spec", "template", "spec", "serviceAccountName"}, "shop"},
	{"Service", "services", harness.Spec(map[string]any{"selector": map[string]any{"app.kubernetes.io/instance": "other"}}), []string{"spec", "selector", "app.kubernetes.io/instance"}, "shop"},
	{"Ingress", "ingresses", harness.Spec(map[string]any{"ingressClassName": "theirs", "rules": []any{map[string]any{"host": "theirs.example.com"}}}), []string{"spec", "rules"}, []any{map[string]any{
		"host": "shop.example.com", "http": map[string]any{"paths": []any{map[string]any{
			"path": "/", "pathType": "Prefix", "backend": map[string]any{"service": map[string]any{"name": "shop", "port": map[string]any{"name": "http"}}},
		}}},
	}}},
	{"HorizontalPodAutoscaler", "horizontalpodautoscalers", harness.Spec(map[string]any{"maxReplicas": 50}), []string{"spec", "maxReplicas"}, int64(10)},
	{"PodDisruptionBudget", "poddisruptionbudgets", harness.Spec(map[string]any{"maxUnavailable": 2}), []string{"spec", "maxUnavailable"}, int64(1)},
}

func TestE7DriftOfEachObjectIsRepairedWithOneWrite(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	s.WaitUntilIdle()
	for _, d := range driftCases {
		s.expectRepaired(d.kind, d.resource, "a changed field", func(u *unstructured.Unstructured) {
			s.Patch(u, d.patch)
		}, func(u *unstructured.Unstructured) error {
			got := harness.Field(u, d.field...)
			if reflect.DeepEqual(got, d.want) {
				return nil
			}
			return fmt.Errorf("%v is %v, not %v", d.field, got, d.want)
		})
		s.expectRepaired(d.kind, d.resource, "removed labels", func(u *unstructured.Unstructured) {
			s.JSONPatch(u, map[string]any{"op": "remove", "path": "/metadata/labels"})
		}, func(u *unstructured.Unstructured) error {
			if l := u.GetLabels(); l["app.kubernetes.io/name"] == "webapp" && l["operetta.dev/owner"] != "" {
				return nil
			}
			return fmt.Errorf("labels are %v", u.GetLabels())
		})
		s.expectRepaired(d.kind, d.resource, "a removed owner reference", func(u *unstructured.Unstructured) {
			s.JSONPatch(u, map[string]any{"op": "remove", "path": "/metadata/ownerReferences"})
		}, func(u *unstructured.Unstructured) error {
			if len(u.GetOwnerReferences()) == 1 {
				return nil
			}
			return fmt.Errorf("owner references are %v", u.GetOwnerReferences())
		})
	}
}

// expectRepaired changes an object, and expects the operator to revert the change in time, with one
// write, and to write nothing else in a few more reconciles.
func (s *env) expectRepaired(kind, resource, what string, harm func(*unstructured.Unstructured), healed func(*unstructured.Unstructured) error) {
	s.T.Helper()
	before := s.Get(kind, "shop")
	from := harness.MarkAudit(s.T)
	began := time.Now()
	harm(before)
	took := harness.Within(s.T, repairLimit, fmt.Sprintf("the repair of %s after %s", kind, what), func() error {
		u, err := s.Lookup(kind, "shop")
		if err == nil && u == nil {
			err = harness.ErrNotYet
		}
		if err == nil {
			err = healed(u)
		}
		return err
	})
	s.ExpectReady("shop")
	s.reconcileOnce("shop")
	all := s.OperatorRequests(from)
	writes := all.Mutating()
	own := writes.OfResource(resource)
	s.T.Logf("%s: %s repaired in %s; writes: %s; Events: %d", kind, what, took.Round(time.Millisecond), writes, len(all.Events()))
	if len(own) != 1 {
		s.T.Errorf("%s: %s took %d writes of the object within %s, not 1", kind, what, len(own), harness.Elapsed(began))
	}
	if other := len(writes) - len(own) - len(writes.OfResource("webapps")); other > 0 {
		s.T.Errorf("%s: %s caused writes of other objects: %s", kind, what, writes)
	}
}

func TestE7DeletedObjectIsCreatedAgainWithOneWrite(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	s.WaitUntilIdle()
	for _, d := range driftCases {
		old := s.Get(d.kind, "shop").GetUID()
		s.expectRepaired(d.kind, d.resource, "deletion", func(u *unstructured.Unstructured) {
			s.Delete(u)
		}, func(u *unstructured.Unstructured) error {
			if u.GetUID() != old {
				return nil
			}
			return harness.ErrNotYet
		})
	}
}

// reconcileOnce triggers one reconcile of a WebApp without changing its spec, and waits until it has
// ended.
func (s *env) reconcileOnce(name string) {
	s.T.Helper()
	o := s.Operator
	before := o.Reconciles("webapp.example.com")
	s.Patch(s.Ref("WebApp", name), harness.Annotation("example.com/poke", fmt.Sprint(time.Now().UnixNano())))
	harness.Eventually(s.T, "another reconcile", func() error {
		if now := o.Reconciles("webapp.example.com"); now <= before {
			return fmt.Errorf("there were %d", now)
		}
		return nil
	})
}
