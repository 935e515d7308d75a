package rights

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// docs/install.md says which overlays of config/install there may be, and how to get a base for another namespace.
func TestOverlaysThatThePageAllowsKeepTheOperatorItsOwn(t *testing.T) {
	t.Parallel()
	given := filesIn(t, filepath.Join(harness.Suite.Root, "config", "install"))
	elsewhere := map[string]string{
		"operetta.yaml":      string(operetta(t, "install", harness.PackageDir("webapp"), "--service-account", "my-operators/operetta")),
		"kustomization.yaml": "resources: [operetta.yaml]\n",
	}
	const adapted = `images: [{name: operetta, newName: registry.example/operetta, newTag: "1"}]
replicas: [{name: operetta, count: 3}]
patches:
- target: {kind: Deployment}
  patch: |-
    - op: replace
      path: /spec/template/spec/containers/0/resources/limits/memory
      value: 1Gi
`
	for name, tc := range map[string]struct {
		reason  string
		base    map[string]string
		overlay string
		want    []string
	}{
		"Adapted":   {"images, replicas and patches change no name", given, adapted, nil},
		"Elsewhere": {"the command gives the names that belong together", elsewhere, adapted, nil},
		"Namespace": {"kustomize does not know the user in the policies, nor what the names of roles consist of", given, adapted + "namespace: my-operators\n", []string{
			"ClusterRole operetta:operetta-system:operetta is that of another operator",
			"ClusterRole operetta:operetta-system:operetta:webapps.example.com is that of another operator",
			"ClusterRoleBinding operetta:operetta-system:operetta is that of another operator",
			"ClusterRoleBinding operetta:operetta-system:operetta:webapps.example.com is that of another operator",
			"ValidatingAdmissionPolicy operetta-status.patches.operetta.dev.webapps.example.com is for another user",
			"ValidatingAdmissionPolicy operetta-status.webapps.example.com is for another user",
		}},
		"Prefix": {"the account has another name then, and the user in the policies has not", given, "namePrefix: x-\n", []string{
			"ClusterRole x-operetta:operetta-system:operetta is that of another operator",
			"ClusterRole x-operetta:operetta-system:operetta:webapps.example.com is that of another operator",
			"ClusterRoleBinding x-operetta:operetta-system:operetta is that of another operator",
			"ClusterRoleBinding x-operetta:operetta-system:operetta:webapps.example.com is that of another operator",
			"ValidatingAdmissionPolicy x-operetta-status.patches.operetta.dev.webapps.example.com is for another user",
			"ValidatingAdmissionPolicy x-operetta-status.webapps.example.com is for another user",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built := objectsIn(t, kustomized(t, tc.base, map[string]string{"kustomization.yaml": "resources: [../base]\n" + tc.overlay}))
			if diff := cmp.Diff(tc.want, foreign(t, built)); diff != "" {
				t.Errorf("%s: what does not belong to the operator (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.HasPrefix(tc.overlay, adapted) {
				return
			}
			d := deploymentIn(t, built)
			containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
			memory, _, _ := unstructured.NestedString(containers[0].(map[string]any), "resources", "limits", "memory")
			got := fmt.Sprint(containers[0].(map[string]any)["image"], " ", harness.Field(d, "spec", "replicas"), " ", memory)
			if want := "registry.example/operetta:1 3 1Gi"; got != want {
				t.Errorf("the Deployment has %s, want %s", got, want)
			}
		})
	}
}

// kustomized returns what kubectl kustomize builds of an overlay of a base.
func kustomized(t *testing.T, base, overlay map[string]string) []byte {
	t.Helper()
	dir := t.TempDir()
	for folder, files := range map[string]map[string]string{"base": base, "overlay": overlay} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			harness.WriteFile(t, filepath.Join(dir, folder, name), text)
		}
	}
	built, err := exec.CommandContext(t.Context(), harness.Suite.ControlPlane.Kubectl(), "kustomize", filepath.Join(dir, "overlay")).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v%s", err, harness.StderrOf(err))
	}
	return built
}

// deploymentIn returns the Deployment of the operator.
func deploymentIn(t *testing.T, all []*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, u := range all {
		if u.GetKind() == "Deployment" {
			return u
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}

// foreign returns what is not about the account that the Deployment runs as: policies for another user, roles for another
// account, and cluster-scoped roles by the names of another operator, whose rights an apply would take away.
func foreign(t *testing.T, all []*unstructured.Unstructured) []string {
	t.Helper()
	d := deploymentIn(t, all)
	account, _, _ := unstructured.NestedString(d.Object, "spec", "template", "spec", "serviceAccountName")
	user := "system:serviceaccount:" + d.GetNamespace() + ":" + account
	var out []string
	for _, u := range all {
		switch u.GetKind() {
		case "ValidatingAdmissionPolicy":
			conditions, _, _ := unstructured.NestedSlice(u.Object, "spec", "matchConditions")
			for _, c := range conditions {
				condition := c.(map[string]any)
				if condition["name"] == "not-the-operator" && !strings.Contains(condition["expression"].(string), `"`+user+`"`) {
					out = append(out, "ValidatingAdmissionPolicy "+u.GetName()+" is for another user")
				}
			}
		case "ClusterRoleBinding", "RoleBinding":
			subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
			want := []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": d.GetNamespace()}}
			if diff := cmp.Diff(want, subjects); diff != "" {
				t.Errorf("the subjects of %s %s (-want +got):\n%s", u.GetKind(), u.GetName(), diff)
			}
		}
		if strings.HasPrefix(u.GetKind(), "ClusterRole") && !strings.HasPrefix(u.GetName(), "operetta:"+d.GetNamespace()+":"+account) {
			out = append(out, u.GetKind()+" "+u.GetName()+" is that of another operator")
		}
	}
	slices.Sort(out)
	return out
}
