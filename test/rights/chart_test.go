package rights

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/install"
	"operetta.dev/test/harness"
)

// helm runs Helm, which a module of its own pins, and returns what it prints.
func helm(t *testing.T, args ...string) []byte {
	t.Helper()
	dir := filepath.Join(harness.Suite.Root, "test", "helm")
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"-C", dir, "tool", "helm"}, args)...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm %s: %v%s\n%s", strings.Join(args, " "), err, harness.StderrOf(err), out)
	}
	return out
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

	want := byIdentity(objectsIn(t, operetta(t, "install", harness.PackageDir("webapp"), "--leader-election-id", "operetta")))
	delete(want, "Namespace /"+operatorNamespace) // Helm creates it
	got := byIdentity(objectsIn(t, []byte(strings.TrimPrefix(string(helm(t, "template", "operetta", chart, "--namespace", operatorNamespace, "--kube-version", "1.36.0")), "---\n"))))
	for _, object := range got {
		u := &unstructured.Unstructured{Object: object}
		if u.GetKind() == "CustomResourceDefinition" && u.GetAnnotations()[install.KeepAnnotation] != "keep" {
			t.Errorf("%s is deleted with a release, and all resources with it", u.GetName())
		}
		unstructured.RemoveNestedField(object, "metadata", "annotations", install.KeepAnnotation)
		if len(u.GetAnnotations()) == 0 {
			unstructured.RemoveNestedField(object, "metadata", "annotations")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what helm template prints (-operetta install +helm template):\n%s", diff)
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
	helm(t, "uninstall", "shop", admin, "--namespace", home)
	s.ExpectGone(deployment)
	s.ExpectObject(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+p.Name+".example.com"), "to stay", harness.Exists)
}
