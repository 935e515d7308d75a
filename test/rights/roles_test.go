package rights

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/engine/ownership"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// The service account of operetta rbac.
const (
	operatorNamespace = "operetta-system"
	serviceAccount    = "system:serviceaccount:operetta-system:operetta"
)

// allPackages returns the folders of all packages that have a sample.
func allPackages() []string {
	out := []string{harness.PackageDir("webapp")}
	for _, name := range []string{"kafka", "kafkatopic", "platform", "postgres", "queue", "team"} {
		out = append(out, filepath.Join(harness.Suite.Root, fixtures, name))
	}
	return out
}

// samples returns the sample of each package in the test's namespace.
func samples(t *testing.T, s *harness.Env) []*unstructured.Unstructured {
	t.Helper()
	files := []string{filepath.Join(harness.Suite.Root, "config", "samples", "webapp.yaml")}
	for _, dir := range allPackages()[1:] {
		files = append(files, filepath.Join(dir, "sample.yaml"))
	}
	var out []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(s.Namespace)
		out = append(out, u)
	}
	return out
}

// operetta runs the binary under test, and returns what it prints.
func operetta(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Suite.Operetta, args...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("operetta %s: %v%s", strings.Join(args, " "), err, harness.StderrOf(err))
	}
	return out
}

// apply applies manifests as the administrator.
func apply(t *testing.T, manifests []byte, flags ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	harness.WriteFile(t, file, string(manifests))
	if _, err := harness.Kubectl(t.Context(), append([]string{"apply", "--server-side", "-f", file}, flags...)...); err != nil {
		t.Fatal(err)
	}
}

// objectsIn returns the objects in manifests.
func objectsIn(t *testing.T, manifests []byte) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// rulesIn returns the rules of the roles in manifests.
func rulesIn(t *testing.T, manifests []byte) []rbacv1.PolicyRule {
	t.Helper()
	var out []rbacv1.PolicyRule
	for _, u := range objectsIn(t, manifests) {
		var role rbacv1.ClusterRole
		if !strings.HasSuffix(u.GetKind(), "Role") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil {
			t.Fatal(err)
		}
		out = append(out, role.Rules...)
	}
	return out
}

// permissionsOf returns permissions as "verb resource.group/subresource".
func permissionsOf(rules []rbacv1.PolicyRule) map[string]bool {
	out := map[string]bool{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					name, sub, _ := strings.Cut(resource, "/")
					out[permissionText(verb, group, name, sub)] = true
				}
			}
		}
	}
	return out
}

func permissionText(verb, group, resource, subresource string) string {
	text := verb + " " + resource + "." + group
	if subresource != "" {
		text += "/" + subresource
	}
	return text
}

// allowed reports whether a request was not refused for a missing permission.
func allowed(e controlplane.AuditEvent) bool { return e.Code != 403 }

// usedIn returns the permissions that requests have used. An apply that created an object took two.
func usedIn(requests harness.Requests) map[string]bool {
	out := map[string]bool{}
	for _, e := range requests {
		out[permissionText(e.Verb, e.Group, e.Resource, e.Subresource)] = true
		if e.Verb == "patch" && e.Code == 201 {
			out[permissionText("create", e.Group, e.Resource, e.Subresource)] = true
		}
	}
	return out
}

func TestJ1NoRoleHasAWildcardOrEscalates(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		of     []string
		args   []string
		acts   bool
	}{
		"everywhere":            {"a ClusterRole is about all that is there", allPackages(), []string{"rbac"}, false},
		"one namespace":         {"there are Roles in it", allPackages(), []string{"rbac", "--namespace", "team-a"}, false},
		"packages from cluster": {"what Packages render is not known", nil, []string{"rbac", "--packages-from-cluster"}, false},
		"shards":                {"there are many Leases", nil, []string{"rbac", "--packages-from-cluster", "--shards", "3"}, false},
		"webhooks":              {"it changes its configurations", allPackages()[:1], []string{"install", "--webhooks"}, false},
		"accounts":              {"it acts as those, and nobody else", allPackages()[:1], []string{"rbac", "--impersonate", "webapp=team-a/web"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := rulesIn(t, operetta(t, slices.Concat(row.args[:1], row.of, row.args[1:])...))
			if len(rules) == 0 {
				t.Fatal("there are no rules")
			}
			acts := false
			for _, r := range rules {
				for _, text := range slices.Concat(r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs) {
					if strings.Contains(text, "*") || text == "escalate" || text == "bind" {
						t.Errorf("%s: %v has %q", row.reason, r, text)
					}
				}
				if slices.Contains(r.Verbs, "impersonate") {
					acts = true
					if diff := cmp.Diff([]string{"serviceaccounts", "web"}, slices.Concat(r.Resources, r.ResourceNames)); diff != "" {
						t.Errorf("%s: whom it acts as (-want +got):\n%s", row.reason, diff)
					}
				}
			}
			if acts != row.acts {
				t.Errorf("%s: it acts as others: %v", row.reason, acts)
			}
		})
	}
}

// unused says why a permission need not be used in the life of the samples, or "" if it has to be.
func unused(permission string) string {
	verb, resource, _ := strings.Cut(permission, " ")
	switch {
	case strings.HasSuffix(resource, "/finalizers"):
		return "asked for by an admission plugin that is off here"
	case strings.HasSuffix(resource, "reviews.authentication.k8s.io"), strings.HasSuffix(resource, "reviews.authorization.k8s.io"):
		return "used when somebody reads metrics"
	case permission == "list pods.", permission == "get persistentvolumeclaims.":
		return "used when a workload is not ready for a while"
	case verb == "list":
		return "used where the API server does not stream lists, and when a status was lost"
	case verb == "patch" && strings.HasPrefix(resource, "events."):
		return "used when an event repeats"
	case verb == "get" && (strings.HasPrefix(resource, "things.") || slices.Contains([]string{"kafkas.kafka.example.com", "platforms.platforms.example.com", "queues.queues.example.com", "overlays.operetta.dev"}, resource)):
		return "used when one is too large for the cache"
	case permission == "get packages.operetta.dev":
		return "used when a standby comes to lead, or two Packages have one kind"
	case strings.HasSuffix(resource, ".operetta.dev/status"):
		return "used when there is a Patch"
	}
	return ""
}

// It runs alone, because others install the same definitions.
func TestF40OperatorOfAllPackagesRunsUnderExactlyItsRoles(t *testing.T) {
	s := harness.NewEnv(t)
	apply(t, []byte("{apiVersion: v1, kind: Namespace, metadata: {name: "+operatorNamespace+"}}")) // another test may have installed an operator there
	if _, err := harness.Kubectl(t.Context(), "delete", "leases", "--all", "--namespace", operatorNamespace); err != nil {
		t.Fatal(err)
	}
	roles := operetta(t, append([]string{"rbac"}, allPackages()...)...)
	apply(t, roles)
	s.ActAs(serviceAccount, "system:serviceaccounts")
	from := harness.MarkAudit(t)
	s.StartOperator(append(allPackages(), harness.Everywhere, "--leader-elect", "--leader-elect-namespace", operatorNamespace)...)
	crs := samples(t, s)
	for _, cr := range crs {
		s.Create(cr.DeepCopy())
	}
	for _, cr := range crs {
		s.ExpectResourceReady(cr)
	}
	web := crs[0]
	s.Patch(web, harness.Spec(map[string]any{"ingress": map[string]any{"enabled": true}, "autoscaling": map[string]any{"enabled": true}}))
	s.ExpectObject(s.Ref("Ingress", web.GetName()), "to exist", harness.Exists)
	s.ExpectObject(s.Ref("HorizontalPodAutoscaler", web.GetName()), "to exist", harness.Exists)
	created := s.ExpectObject(s.Ref("Secret", "ledger-credentials"), "to exist", harness.Exists)
	s.Patch(created, map[string]any{"metadata": map[string]any{"labels": nil, "annotations": nil}})
	s.ExpectObject(created, "to have its annotations again, which is an update because its policy is createOnly", func(u *unstructured.Unstructured) error {
		if u.GetAnnotations()[ownership.OwnerAnnotation] != created.GetAnnotations()[ownership.OwnerAnnotation] {
			return harness.ErrNotYet
		}
		return nil
	})
	for _, cr := range crs {
		s.Delete(cr)
	}
	for _, cr := range crs {
		s.ExpectGone(cr)
	}
	requests := s.RequestsOf(from, s.User)
	t.Logf("requests: %s", requests)
	for _, e := range requests {
		if e.Code == 403 {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
	compare(t, permissionsOf(rulesIn(t, roles)), usedIn(requests))
}

// compare fails a test for each permission that was used without being granted, or granted and not used. Those that need not be used in a
// test are known, or named by it.
func compare(t *testing.T, granted, used map[string]bool, idleHere ...string) {
	t.Helper()
	for _, p := range slices.Sorted(maps.Keys(used)) {
		if own := p == "create selfsubjectaccessreviews.authorization.k8s.io"; !granted[p] && !own {
			t.Errorf("used without being in a role: %s", p)
		}
	}
	var idle []string
	for _, p := range slices.Sorted(maps.Keys(granted)) {
		switch why := unused(p); {
		case used[p], slices.Contains(idleHere, p):
		case why != "":
			idle = append(idle, fmt.Sprintf("%s (%s)", p, why))
		default:
			t.Errorf("granted and never used: %s", p)
		}
	}
	t.Logf("not used, for a reason: %s", strings.Join(idle, "; "))
}
