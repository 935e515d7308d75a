package rights

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

var update = flag.Bool("update", false, "write the folder config/install")

// configFile returns the file of config/install in which an object is.
func configFile(kind string) string {
	switch kind {
	case "CustomResourceDefinition":
		return "crds.yaml"
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return "policies.yaml"
	case "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return "rbac.yaml"
	}
	return "manager.yaml"
}

func TestTheKustomizeBaseIsWhatInstallPrints(t *testing.T) {
	t.Parallel()
	printed := operetta(t, "install", harness.PackageDir("webapp"))
	dir := filepath.Join(harness.Suite.Root, "config", "install")
	want := map[string][][]byte{}
	for i, document := range bytes.Split(bytes.TrimSuffix(printed, []byte("\n")), []byte("\n---\n")) {
		file := configFile(objectsIn(t, printed)[i].GetKind())
		want[file] = append(want[file], document)
	}
	for file, documents := range want {
		text := append(bytes.Join(documents, []byte("\n---\n")), '\n')
		path := filepath.Join(dir, file)
		if *update {
			harness.WriteFile(t, path, string(text))
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(got)); diff != "" {
			t.Errorf("%s is not what operetta install ./cue/webapp prints; go test ./test/rights -run Kustomize -update writes it (-want +got):\n%s", path, diff)
		}
	}

	built, err := exec.CommandContext(t.Context(), harness.Suite.ControlPlane.Kubectl(), "kustomize", dir).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v%s", err, harness.StderrOf(err))
	}
	if diff := cmp.Diff(byIdentity(objectsIn(t, printed)), byIdentity(objectsIn(t, built))); diff != "" {
		t.Errorf("what kubectl kustomize builds (-operetta install +kubectl kustomize):\n%s", diff)
	}
}

// byIdentity returns the content of objects by kind and name.
func byIdentity(objects []*unstructured.Unstructured) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, u := range objects {
		out[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u.Object
	}
	return out
}
