package rights

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"

	rbacv1 "k8s.io/api/rbac/v1"
)

// rulesFor returns the rules of the roles that are bound to a service account of a name.
func rulesFor(t *testing.T, objects []*unstructured.Unstructured, name string) []rbacv1.PolicyRule {
	t.Helper()
	bound := map[string]bool{}
	for _, u := range objects {
		var binding rbacv1.ClusterRoleBinding
		if !strings.HasSuffix(u.GetKind(), "RoleBinding") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &binding); err != nil {
			t.Fatal(err)
		}
		if binding.Subjects[0].Name == name {
			bound[binding.RoleRef.Kind+" "+u.GetNamespace()+"/"+binding.RoleRef.Name] = true
		}
	}
	var out []rbacv1.PolicyRule
	for _, u := range objects {
		var role rbacv1.ClusterRole
		if !bound[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil {
			t.Fatal(err)
		}
		out = append(out, role.Rules...)
	}
	return out
}

// It runs alone, because others install the same definitions.
func TestOperatorAndItsAccountsRunUnderExactlyTheirRolesAndPolicies(t *testing.T) {
	s := harness.NewEnv(t)
	queue := filepath.Join(harness.Suite.Root, fixtures, "queue")
	flags := []string{"--impersonate", "webapp=" + s.Namespace + "/for-web", "--impersonate", "queue=" + s.Namespace + "/for-queue"}
	packages := []string{harness.PackageDir("webapp"), queue}
	printed := objectsIn(t, operetta(t, slices.Concat([]string{"install"}, packages, flags)...))
	var policies []*unstructured.Unstructured
	for _, u := range printed {
		switch {
		case u.GetKind() == "Deployment":
		case strings.HasPrefix(u.GetKind(), "ValidatingAdmissionPolicy"):
			policies = append(policies, u)
			t.Cleanup(func() { harness.RemoveForGood(t, u) })
			fallthrough
		default:
			apply(t, harness.Encode(t, u.Object))
		}
	}
	if len(policies) == 0 {
		t.Fatal("no policy is printed")
	}
	s.ActAs(serviceAccount, "system:serviceaccounts")
	from := harness.MarkAudit(t)
	s.StartOperator(slices.Concat(packages, flags, []string{harness.Everywhere, "--leader-elect", "--leader-elect-namespace", operatorNamespace})...)
	var mine []*unstructured.Unstructured
	for _, cr := range samples(t, s) {
		if cr.GetKind() == "WebApp" || cr.GetKind() == "Queue" {
			mine = append(mine, s.Create(cr))
		}
	}
	for _, cr := range mine {
		s.ExpectResourceReady(cr)
	}
	tenant := s.Tenant("t", s.Namespace, harness.Rule("example.com", harness.AllVerbs, "webapps", "webapps/status"))
	if err := tenant.PatchStatus(mine[0], map[string]any{"status": map[string]any{"inventory": nil}}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), s.AccountUser("for-web")) {
		t.Errorf("a tenant writes the inventory: %v", err)
	}
	web := mine[0]
	s.Patch(web, harness.Spec(map[string]any{"ingress": map[string]any{"enabled": true}, "autoscaling": map[string]any{"enabled": true}}))
	s.ExpectObject(s.Ref("Ingress", web.GetName()), "to exist", harness.Exists)
	s.ExpectObject(s.Ref("HorizontalPodAutoscaler", web.GetName()), "to exist", harness.Exists)
	for _, cr := range mine {
		s.Delete(cr)
	}
	for _, cr := range mine {
		s.ExpectGone(cr)
	}
	requests := s.RequestsOf(from, s.User)
	for account, user := range map[string]string{"operetta": "", "for-web": s.AccountUser("for-web"), "for-queue": s.AccountUser("for-queue")} {
		own := requests.Filter(func(e controlplane.AuditEvent) bool { return e.As == user })
		for _, e := range own {
			if e.Code == 403 {
				t.Errorf("refused to %s: %s %s", account, e.Verb, e.RequestURI)
			}
		}
		granted := permissionsOf(rulesFor(t, printed, account))
		t.Logf("%s has %d permissions, and sent %s", account, len(granted), own)
		for permission, why := range map[string]string{
			"impersonate serviceaccounts.":                          "it is used by all requests of the accounts",
			"create customresourcedefinitions.apiextensions.k8s.io": "the definitions were installed before",
			"create events.events.k8s.io":                           "the operator itself says nothing here",
			"get webapps.example.com":                               "used when a custom resource is too large for the cache",
		} {
			if (account == "operetta") == (permission != "get webapps.example.com") {
				t.Logf("%s: %s: %s", account, permission, why)
				delete(granted, permission)
			}
		}
		used := usedIn(own)
		if account == "operetta" && used["create events.events.k8s.io"] {
			t.Error("the operator itself writes events about resources")
		}
		compare(t, granted, used)
	}
}
