package e2e

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// repairLimit is how soon drift has to be repaired.
const repairLimit = 5 * time.Second

// drifts are a change of a rendered field for each kind, and what undoes it.
var drifts = []struct {
	kind, resource string
	patch          map[string]any
	field          []string
	want           any
}{
	{"ConfigMap", "configmaps", map[string]any{"data": map[string]any{"index.html": "defaced"}}, []string{"data", "index.html"}, "hello"},
	{"Secret", "secrets", map[string]any{"data": map[string]any{"TOKEN": "AAAA"}}, []string{"data", "TOKEN"}, "b3BlbnNlc2FtZQ=="},
	{"ServiceAccount", "serviceaccounts", map[string]any{"automountServiceAccountToken": true}, []string{"automountServiceAccountToken"}, false},
	{"Deployment", "deployments", spec(map[string]any{"template": map[string]any{"spec": map[string]any{"serviceAccountName": "default"}}}), []string{"spec", "template", "spec", "serviceAccountName"}, "shop"},
	{"Service", "services", spec(map[string]any{"selector": map[string]any{"app.kubernetes.io/instance": "other"}}), []string{"spec", "selector", "app.kubernetes.io/instance"}, "shop"},
	{"Ingress", "ingresses", spec(map[string]any{"ingressClassName": "theirs", "rules": []any{map[string]any{"host": "theirs.example.com"}}}), []string{"spec", "rules"}, []any{map[string]any{
		"host": "shop.example.com", "http": map[string]any{"paths": []any{map[string]any{
			"path": "/", "pathType": "Prefix", "backend": map[string]any{"service": map[string]any{"name": "shop", "port": map[string]any{"name": "http"}}},
		}}},
	}}},
	{"HorizontalPodAutoscaler", "horizontalpodautoscalers", spec(map[string]any{"maxReplicas": 50}), []string{"spec", "maxReplicas"}, int64(10)},
	{"PodDisruptionBudget", "poddisruptionbudgets", spec(map[string]any{"maxUnavailable": 2}), []string{"spec", "maxUnavailable"}, int64(1)},
}

func TestE7DriftOfEachObjectIsRepairedWithOneWrite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	s.create(s.webapp("shop", everything()))
	s.expectReady("shop")
	s.settle()
	for _, d := range drifts {
		s.repaired(d.kind, d.resource, "a changed field", func(u *unstructured.Unstructured) {
			s.patch(u, d.patch)
		}, func(u *unstructured.Unstructured) error {
			got := field(u, d.field...)
			if reflect.DeepEqual(got, d.want) {
				return nil
			}
			return fmt.Errorf("%v is %v, not %v", d.field, got, d.want)
		})
		s.repaired(d.kind, d.resource, "removed labels", func(u *unstructured.Unstructured) {
			s.jsonPatch(u, map[string]any{"op": "remove", "path": "/metadata/labels"})
		}, func(u *unstructured.Unstructured) error {
			if l := u.GetLabels(); l["app.kubernetes.io/name"] == "webapp" && l["operetta.dev/owner"] != "" {
				return nil
			}
			return fmt.Errorf("labels are %v", u.GetLabels())
		})
		s.repaired(d.kind, d.resource, "a removed owner reference", func(u *unstructured.Unstructured) {
			s.jsonPatch(u, map[string]any{"op": "remove", "path": "/metadata/ownerReferences"})
		}, func(u *unstructured.Unstructured) error {
			if len(u.GetOwnerReferences()) == 1 {
				return nil
			}
			return fmt.Errorf("owner references are %v", u.GetOwnerReferences())
		})
	}
}

// repaired does something to an object and expects that it is undone in time, by
// one write, and that a few reconciles later there is still no other.
func (s *site) repaired(kind, resource, what string, harm func(*unstructured.Unstructured), healed func(*unstructured.Unstructured) error) {
	s.t.Helper()
	before := s.get(kind, "shop")
	from := mark(s.t)
	began := time.Now()
	harm(before)
	took := within(s.t, repairLimit, fmt.Sprintf("the repair of %s after %s", kind, what), func() error {
		u, err := s.find(kind, "shop")
		if err == nil && u == nil {
			err = errNotYet
		}
		if err == nil {
			err = healed(u)
		}
		return err
	})
	s.expectReady("shop")
	s.reconcileOnce("shop")
	all := s.operatorRequests(from)
	writes := all.mutating()
	own := writes.about(resource)
	s.t.Logf("%s: %s repaired in %s; writes: %s; Events: %d", kind, what, took.Round(time.Millisecond), writes, len(all.events()))
	if len(own) != 1 {
		s.t.Errorf("%s: %s took %d writes of the object within %s, not 1", kind, what, len(own), since(began))
	}
	if other := len(writes) - len(own) - len(writes.about("webapps")); other > 0 {
		s.t.Errorf("%s: %s caused writes of other objects: %s", kind, what, writes)
	}
}

func TestE7DeletedObjectIsCreatedAgainWithOneWrite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	s.create(s.webapp("shop", everything()))
	s.expectReady("shop")
	s.settle()
	for _, d := range drifts {
		old := s.get(d.kind, "shop").GetUID()
		s.repaired(d.kind, d.resource, "deletion", func(u *unstructured.Unstructured) {
			s.delete(u)
		}, func(u *unstructured.Unstructured) error {
			if u.GetUID() != old {
				return nil
			}
			return errNotYet
		})
	}
}

// reconcileOnce causes one reconcile of a WebApp without changing what it asks for,
// and waits until it has ended.
func (s *site) reconcileOnce(name string) {
	s.t.Helper()
	o := s.operator
	before := o.reconciles("webapp.example.com")
	s.patch(s.ref("WebApp", name), annotation("example.com/poke", fmt.Sprint(time.Now().UnixNano())))
	eventually(s.t, "another reconcile", func() error {
		if now := o.reconciles("webapp.example.com"); now <= before {
			return fmt.Errorf("there were %d", now)
		}
		return nil
	})
}
