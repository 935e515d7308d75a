package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

func TestG1DeletedWebAppLeavesNothingAndDependentsGoFirst(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	from, began := harness.MarkAudit(t), time.Now()
	s.Delete(cr)
	s.ExpectGone(cr)
	t.Logf("gone after %s", harness.Elapsed(began))

	for _, kind := range append([]string{"ReplicaSet", "Pod"}, kinds...) {
		s.expectNone(kind)
	}
	all := s.RequestsOf(from)
	deletes := all.WithVerbs("delete").Filter(func(e controlplane.AuditEvent) bool { return e.User == s.User && e.Namespace == s.Namespace })
	t.Logf("the operator's requests: %s", s.OperatorRequests(from))
	order := map[string]int{}
	for i, e := range deletes {
		if _, twice := order[e.Resource]; twice {
			t.Errorf("%s was deleted twice", e.Resource)
		}
		order[e.Resource] = i
	}
	for _, before := range [][2]string{
		{"ingresses", "deployments"}, {"horizontalpodautoscalers", "deployments"}, {"poddisruptionbudgets", "services"},
		{"deployments", "configmaps"}, {"services", "secrets"}, {"deployments", "serviceaccounts"},
	} {
		first, ok := order[before[0]]
		second, ok2 := order[before[1]]
		if !ok || !ok2 || first > second {
			t.Errorf("%s were not deleted before %s: %v", before[0], before[1], order)
		}
	}
	// Objects that pods use are deleted only after the pods are gone.
	pods := all.OfResource("pods").WithVerbs("delete").Filter(func(e controlplane.AuditEvent) bool { return e.Namespace == s.Namespace && e.Code == 200 })
	config := slices.IndexFunc(all, func(e controlplane.AuditEvent) bool {
		return e.Resource == "configmaps" && e.Verb == "delete" && e.Namespace == s.Namespace
	})
	if len(pods) == 0 || config < 0 || all[config].Time.Before(pods[len(pods)-1].Time) {
		t.Errorf("the ConfigMap was deleted before the last pod: %s", all.WithVerbs("delete"))
	}
}

// expectNone waits until the namespace has no object of a kind, except for those that every namespace
// has.
func (s *env) expectNone(kind string) {
	s.T.Helper()
	harness.Eventually(s.T, "no "+kind, func() error {
		for _, u := range s.List(harness.APIVersions[kind], kind) {
			if u.GetName() != "default" && u.GetName() != "kube-root-ca.crt" {
				return fmt.Errorf("%s exists, deleted at %v", u.GetName(), u.GetDeletionTimestamp())
			}
		}
		return nil
	})
}

func TestG1DeletionNamesTheFinalizerThatHoldsItAndResumes(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	s.StartOperator(harness.PackageDir("webapp"))
	cr := s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	service := s.Ref("Service", "shop")
	s.Patch(service, map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/dns"}}})
	s.ExpectReady("shop")
	s.WaitUntilIdle()
	config := s.Get("ConfigMap", "shop")
	s.Delete(cr)
	held := s.ExpectObject(cr, "to be held", func(u *unstructured.Unstructured) error {
		message, _ := harness.Condition(u, "Ready")["message"].(string)
		if harness.Field(u, "status", "phase") == "Deleting" && harness.ContainsAll(message, []string{"Service " + s.Namespace + "/shop", "example.com/dns"}) {
			return nil
		}
		return fmt.Errorf("phase %v, message %s", harness.Field(u, "status", "phase"), message)
	})
	t.Logf("Ready: %v: %v", harness.Condition(held, "Ready")["reason"], harness.Condition(held, "Ready")["message"])
	s.ExpectGone(s.Ref("Ingress", "shop"))
	// The operator writes nothing while it waits, and the objects that the Service depends on stay.
	s.WaitUntilIdle()
	after := s.Get("ConfigMap", "shop")
	if after.GetResourceVersion() != config.GetResourceVersion() || after.GetDeletionTimestamp() != nil {
		t.Error("the ConfigMap was touched while the Service was still there")
	}
	began := time.Now()
	s.JSONPatch(service, map[string]any{"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/dns"},
		map[string]any{"op": "remove", "path": "/metadata/finalizers/0"})
	s.ExpectGone(cr)
	t.Logf("gone %s after the finalizer", harness.Elapsed(began))
	for _, kind := range append([]string{"ReplicaSet", "Pod"}, kinds...) {
		s.expectNone(kind)
	}
}

func TestG5OrphanedObjectsStay(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"while the operator runs": false, "while the operator is away": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			o := s.StartOperator(harness.PackageDir("webapp"))
			cr := s.Create(s.Webapp("shop", allFields()))
			s.ExpectReady("shop")
			if away {
				o.Stop()
			}
			s.Kubectl("delete", "webapps.example.com", "shop", "--cascade=orphan", "--wait=false")
			if away {
				s.ExpectObject(cr, "to be done with by the garbage collector", func(u *unstructured.Unstructured) error {
					if f := u.GetFinalizers(); slices.Contains(f, "orphan") {
						return fmt.Errorf("finalizers are %v", f)
					}
					return nil
				})
				s.StartOperator(harness.PackageDir("webapp"))
			}
			s.ExpectGone(cr)
			s.WaitUntilIdle()
			for _, kind := range kinds {
				if u := s.Get(kind, "shop"); u.GetDeletionTimestamp() != nil || len(u.GetOwnerReferences()) > 0 {
					t.Errorf("%s is being deleted or still owned: %v", kind, u.GetOwnerReferences())
				}
			}
			// Another resource with that name may adopt the objects that were left.
			s.Create(s.Webapp("shop", allFields()))
			s.ExpectReady("shop")
		})
	}
}
