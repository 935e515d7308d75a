package rights

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/install"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// helmProgram returns the path of Helm. The go command takes longer to find it than Helm to run.
var helmProgram = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "-C", filepath.Join(harness.Suite.Root, "test", "helm"), "tool", "-n", "helm").Output()
	return strings.TrimSpace(string(out)), err
})

// helm runs Helm, which a module of its own pins, and returns what it prints.
func helm(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := tryHelm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v%s\n%s", strings.Join(args, " "), err, harness.StderrOf(err), out)
	}
	return out
}

// tryHelm is helm for what Helm may refuse.
func tryHelm(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	program, err := helmProgram()
	if err != nil {
		t.Fatalf("go tool helm: %v%s", err, harness.StderrOf(err))
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	return cmd.Output()
}

// It needs no Helm, so that it runs wherever the other tests do.
func TestTheFilesOfTheChartAreCurrent(t *testing.T) {
	t.Parallel()
	printed, chart := t.TempDir(), filepath.Join(harness.Suite.Root, "config", "chart")
	if *update {
		printed = chart
	}
	operetta(t, "install", harness.PackageDir("webapp"), "--chart", printed)
	if diff := cmp.Diff(filesIn(t, printed), filesIn(t, chart)); diff != "" {
		t.Errorf("config/chart is not what operetta install ./cue/webapp --chart writes; go test ./test/rights -run Chart -update writes it (-want +got):\n%s", diff)
	}
}

func TestF41TheChartIsWhatInstallPrints(t *testing.T) {
	t.Parallel()
	chart := t.TempDir()
	operetta(t, "install", harness.PackageDir("webapp"), "--chart", chart)
	helm(t, "lint", "--strict", chart)
	for name, webhooks := range map[string]string{"without webhooks": "", "own certificates": "operator", "cert-manager": "cert-manager"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			helm(t, "lint", "--strict", chart, "--set", "webhooks="+webhooks)
			args := []string{"install", harness.PackageDir("webapp"), "--leader-election-id", "operetta"}
			if webhooks != "" {
				args = append(args, "--webhooks="+webhooks)
			}
			want := byIdentity(objectsIn(t, operetta(t, args...)))
			delete(want, "Namespace /"+operatorNamespace) // Helm creates it
			got := byIdentity(objectsIn(t, []byte(strings.TrimPrefix(string(helm(t, "template", "operetta", chart, "--namespace", operatorNamespace, "--kube-version", "1.36.0", "--set", "webhooks="+webhooks)), "---\n"))))
			withoutKeep(t, got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what helm template prints (-operetta install +helm template):\n%s", diff)
			}
		})
	}
}

// withoutKeep takes from definitions the annotation by which Helm leaves them behind, which each of them has to have.
func withoutKeep(t *testing.T, all map[string]map[string]any) {
	t.Helper()
	for _, object := range all {
		u := &unstructured.Unstructured{Object: object}
		if u.GetKind() == "CustomResourceDefinition" && u.GetAnnotations()[install.KeepAnnotation] != "keep" {
			t.Errorf("%s is deleted with a release, and all resources with it", u.GetName())
		}
		unstructured.RemoveNestedField(object, "metadata", "annotations", install.KeepAnnotation)
		if len(u.GetAnnotations()) == 0 {
			unstructured.RemoveNestedField(object, "metadata", "annotations")
		}
	}
}

// A value that no template knows would leave the Deployment out.
func TestAChartRefusesValuesThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	chart := t.TempDir()
	operetta(t, "install", harness.PackageDir("webapp"), "--chart", chart, "--webhooks=cert-manager")
	if values := filesIn(t, chart)["values.yaml"]; !strings.Contains(values, "webhooks: \"cert-manager\"\n") {
		t.Errorf("the flag is not the default:\n%s", values)
	}
	for _, value := range []string{"webhooks=Operator", "webhooks=true", "webhooks=null", "replicas=0", "image=", "replica=3", "image.tag=2", "enabled=false"} {
		if out, err := tryHelm(t, "template", "operetta", chart, "--kube-version", "1.36.0", "--set", value); err == nil {
			t.Errorf("--set %s is accepted:\n%.500s", value, out)
		}
	}
	// A chart above this one has values for all charts below it, and a condition whether this one is there.
	for _, value := range []string{"global.imageRegistry=registry.example", "enabled=true"} {
		helm(t, "template", "operetta", chart, "--kube-version", "1.36.0", "--set", value)
	}
}

// filesIn returns the files below a folder by their paths.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAReleaseOfAChartIsInstalledUpgradedAndUninstalled(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := harness.NewEnv(t)
	home := "123" + s.Namespace // what looks like a number is a name, too
	p := harness.NewTestPackage(t, "charted", limitedBody)
	chart := t.TempDir()
	operetta(t, "install", p.Dir, "--namespace", s.Namespace, "--chart", chart)
	admin := "--kubeconfig=" + harness.Suite.ControlPlane.Kubeconfig()
	// The definition of Patch is there already, from other tests.
	helm(t, "install", "shop", chart, admin, "--namespace", home, "--create-namespace", "--take-ownership")
	t.Cleanup(func() { harness.RemoveForGood(t, harness.Object("v1", "Namespace", "", home)) })
	deployment := harness.Object("apps/v1", "Deployment", home, "shop")
	ready := func(want int64) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error {
			if harness.Field(u, "status", "readyReplicas") != want {
				return harness.ErrNotYet
			}
			return nil
		}
	}
	s.ExpectObject(deployment, "to have two pods", ready(2))
	helm(t, "upgrade", "shop", chart, admin, "--namespace", home, "--set", "replicas=3", "--set", "image=registry.example/operetta:1")
	s.ExpectObject(deployment, "to have three pods", ready(3))
	// Webhooks are switched on and off again.
	configuration := harness.Object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "shop-webhooks."+home)
	helm(t, "upgrade", "shop", chart, admin, "--namespace", home, "--reuse-values", "--set", "webhooks=operator")
	s.ExpectObject(configuration, "to exist", harness.Exists)
	s.ExpectObject(harness.Object("v1", "Secret", home, "shop-webhooks"), "to exist", harness.Exists)
	helm(t, "upgrade", "shop", chart, admin, "--namespace", home, "--reuse-values", "--set", "webhooks=")
	s.ExpectGone(configuration)
	helm(t, "uninstall", "shop", admin, "--namespace", home)
	s.ExpectGone(deployment)
	s.ExpectObject(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+p.Name+".example.com"), "to stay", harness.Exists)
}
