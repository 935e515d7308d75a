package rights

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/install"
	"operetta.dev/test/harness"
)

// verifyBundle returns what the validator of the Operator Framework, which a module of its own pins, says of a bundle. It
// ends well whatever it finds.
func verifyBundle(t *testing.T, dir string) string {
	t.Helper()
	module := filepath.Join(harness.Suite.Root, "test", "olm")
	out, err := exec.CommandContext(t.Context(), "go", "-C", module, "tool", "operator-verify", "manifests", "--operatorhub_validate", "--object_validate", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("operator-verify: %v\n%s", err, out)
	}
	return string(out)
}

// The Operator Lifecycle Manager itself does not run here: its validator does, and what it makes of a bundle is compared.
func TestF41ABundleOfOLMIsWhatInstallPrints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	operetta(t, "install", harness.PackageDir("webapp"), "--olm", dir, "--olm-version", "1.2.3")
	if said := verifyBundle(t, dir); strings.Contains(said, "level=error") {
		t.Errorf("the bundle is not valid:\n%s", said)
	}
	want := byIdentity(objectsIn(t, operetta(t, "install", harness.PackageDir("webapp"), "--crds", "leave")))
	for name := range want {
		if kind, _, _ := strings.Cut(name, " "); kind == "Namespace" || kind == "ServiceAccount" || strings.HasSuffix(kind, "Binding") && !strings.HasPrefix(kind, "Validating") {
			delete(want, name) // OLM makes those
		}
	}
	rules := map[string][]any{}
	for name, object := range want {
		if kind, _, _ := strings.Cut(name, " "); kind == "ClusterRole" || kind == "Role" {
			rules[kind] = append(rules[kind], object["rules"].([]any)...)
			delete(want, name)
		}
	}
	got, gotRules := installedByOLM(t, dir)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what OLM makes of the bundle (-operetta install +bundle):\n%s", diff)
	}
	if diff := cmp.Diff(counted(t, rules), counted(t, gotRules)); diff != "" {
		t.Errorf("the rules (-operetta install +bundle):\n%s", diff)
	}
	breakBundle(t, dir)
	if said := verifyBundle(t, dir); !strings.Contains(said, "level=error") {
		t.Errorf("the validator accepts a bundle without a definition:\n%s", said)
	}
}

// breakBundle removes a definition that the bundle says it has.
func breakBundle(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, install.BundleManifests, "webapps.example.com.customresourcedefinition.yaml")); err != nil {
		t.Fatal(err)
	}
}

// installedByOLM returns the objects that OLM and whoever applies the policies make of a bundle, and the rules of the service account by
// the kind of role.
func installedByOLM(t *testing.T, dir string) (map[string]map[string]any, map[string][]any) {
	t.Helper()
	var all []*unstructured.Unstructured
	rules := map[string][]any{}
	for name, text := range filesIn(t, dir) {
		if !strings.HasPrefix(name, install.BundleManifests+"/") && name != install.BundlePolicies {
			continue
		}
		for _, u := range objectsIn(t, []byte(strings.TrimPrefix(text, "---\n"))) {
			switch u.GetKind() {
			case "ClusterServiceVersion":
				if u.GetName() != "operetta.v1.2.3" {
					t.Errorf("it is called %s", u.GetName())
				}
				all = append(all, deploymentsOf(t, u)...)
				rules["ClusterRole"], rules["Role"] = rulesOfAccount(t, u, "clusterPermissions"), rulesOfAccount(t, u, "permissions")
				continue
			case "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			default:
				u.SetNamespace(operatorNamespace)
			}
			all = append(all, u)
		}
	}
	return byIdentity(all), rules
}

// deploymentsOf returns the Deployments that OLM makes for a ClusterServiceVersion.
func deploymentsOf(t *testing.T, csv *unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	list, _, err := unstructured.NestedSlice(csv.Object, "spec", "install", "spec", "deployments")
	if err != nil || len(list) == 0 {
		t.Fatalf("there is no Deployment: %v", err)
	}
	var out []*unstructured.Unstructured
	for _, one := range list {
		d := one.(map[string]any)
		u := harness.Object("apps/v1", "Deployment", operatorNamespace, d["name"].(string))
		u.Object["spec"] = d["spec"]
		if err := unstructured.SetNestedField(u.Object, d["label"], "metadata", "labels"); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// rulesOfAccount returns the rules for the service account of the operator.
func rulesOfAccount(t *testing.T, csv *unstructured.Unstructured, field string) []any {
	t.Helper()
	list, _, err := unstructured.NestedSlice(csv.Object, "spec", "install", "spec", field)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %d accounts, %v", field, len(list), err)
	}
	account := list[0].(map[string]any)
	if account["serviceAccountName"] != "operetta" {
		t.Errorf("%s are those of %v", field, account["serviceAccountName"])
	}
	return account["rules"].([]any)
}

// counted returns how often each rule is there, by the kind of role.
func counted(t *testing.T, rules map[string][]any) map[string]int {
	t.Helper()
	out := map[string]int{}
	for kind, list := range rules {
		for _, rule := range list {
			text, err := json.Marshal(rule)
			if err != nil {
				t.Fatal(err)
			}
			out[kind+" "+string(text)]++
		}
	}
	return out
}
