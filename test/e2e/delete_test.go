package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
)

func TestG1DeletedWebAppLeavesNothingAndDependentsGoFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", everything()))
	s.expectReady("shop")
	from, began := mark(t), time.Now()
	s.delete(cr)
	s.expectGone(cr)
	t.Logf("gone after %s", since(began))

	for _, kind := range append([]string{"ReplicaSet", "Pod"}, kinds...) {
		s.expectNone(kind)
	}
	all := s.requestsOf(from)
	deletes := all.verbs("delete").only(func(e controlplane.AuditEvent) bool { return e.User == s.user && e.Namespace == s.namespace })
	t.Logf("the operator's requests: %s", s.operatorRequests(from))
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
	// What pods use is deleted when there are none any more, whoever ended them.
	pods := all.about("pods").verbs("delete").only(func(e controlplane.AuditEvent) bool { return e.Namespace == s.namespace && e.Code == 200 })
	config := slices.IndexFunc(all, func(e controlplane.AuditEvent) bool {
		return e.Resource == "configmaps" && e.Verb == "delete" && e.Namespace == s.namespace
	})
	if len(pods) == 0 || config < 0 || all[config].Time.Before(pods[len(pods)-1].Time) {
		t.Errorf("the ConfigMap was deleted before the last pod: %s", all.verbs("delete"))
	}
}

// expectNone waits until the namespace holds no object of a kind but those that
// are in every namespace.
func (s *site) expectNone(kind string) {
	s.t.Helper()
	eventually(s.t, "no "+kind, func() error {
		for _, u := range s.list(apiVersions[kind], kind) {
			if u.GetName() != "default" && u.GetName() != "kube-root-ca.crt" {
				return fmt.Errorf("%s exists, deleted at %v", u.GetName(), u.GetDeletionTimestamp())
			}
		}
		return nil
	})
}

func TestG1DeletionNamesTheFinalizerThatHoldsItAndResumes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.operate(packageOf("webapp"))
	cr := s.create(s.webapp("shop", everything()))
	s.expectReady("shop")
	service := s.ref("Service", "shop")
	s.patch(service, map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/dns"}}})
	s.expectReady("shop")
	s.settle()
	config := s.get("ConfigMap", "shop")
	s.delete(cr)
	held := s.expectThat(cr, "to be held", func(u *unstructured.Unstructured) error {
		message, _ := condition(u, "Ready")["message"].(string)
		if field(u, "status", "phase") == "Deleting" && containsAll(message, []string{"Service " + s.namespace + "/shop", "example.com/dns"}) {
			return nil
		}
		return fmt.Errorf("phase %v, message %s", field(u, "status", "phase"), message)
	})
	t.Logf("Ready: %v: %v", condition(held, "Ready")["reason"], condition(held, "Ready")["message"])
	s.expectGone(s.ref("Ingress", "shop"))
	// It is quiet while it waits, and what the Service depends on is untouched.
	s.settle()
	after := s.get("ConfigMap", "shop")
	if after.GetResourceVersion() != config.GetResourceVersion() || after.GetDeletionTimestamp() != nil {
		t.Error("the ConfigMap was touched while the Service was still there")
	}
	began := time.Now()
	s.jsonPatch(service, map[string]any{"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/dns"},
		map[string]any{"op": "remove", "path": "/metadata/finalizers/0"})
	s.expectGone(cr)
	t.Logf("gone %s after the finalizer", since(began))
	for _, kind := range append([]string{"ReplicaSet", "Pod"}, kinds...) {
		s.expectNone(kind)
	}
}

func TestG5OrphanedObjectsStay(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"while the operator runs": false, "while the operator is away": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			o := s.operate(packageOf("webapp"))
			cr := s.create(s.webapp("shop", everything()))
			s.expectReady("shop")
			if away {
				o.stop()
			}
			s.kubectl("delete", "webapp", "shop", "--cascade=orphan", "--wait=false")
			if away {
				s.expectThat(cr, "to be done with by the garbage collector", func(u *unstructured.Unstructured) error {
					if f := u.GetFinalizers(); slices.Contains(f, "orphan") {
						return fmt.Errorf("finalizers are %v", f)
					}
					return nil
				})
				s.operate(packageOf("webapp"))
			}
			s.expectGone(cr)
			s.settle()
			for _, kind := range kinds {
				if u := s.get(kind, "shop"); u.GetDeletionTimestamp() != nil || len(u.GetOwnerReferences()) > 0 {
					t.Errorf("%s is being deleted or still owned: %v", kind, u.GetOwnerReferences())
				}
			}
			// Another resource of that name may have them again.
			s.create(s.webapp("shop", everything()))
			s.expectReady("shop")
		})
	}
}
