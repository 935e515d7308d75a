package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// killedAfter is after how many resources a process that migrates is killed.
const killedAfter = 60

// storedOld returns how many resources there are to migrate: three pages, and five at full length.
func storedOld() int {
	if harness.Long() {
		return 500
	}
	return 220
}

// oldStorage is a kind of which objects are stored in an old version.
type oldStorage struct {
	*env

	group, definition, dir string
}

// stored lets a version be the storage version.
func (o *oldStorage) stored(version string) {
	o.T.Helper()
	d := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", o.definition)
	is := o.ExpectObject(d, "to exist", harness.Exists)
	versions, _, _ := unstructured.NestedSlice(is.Object, "spec", "versions")
	for _, v := range versions {
		v.(map[string]any)["storage"] = v.(map[string]any)["name"] == version
	}
	o.Patch(d, map[string]any{"spec": map[string]any{"versions": versions}})
}

// versions returns the versions of status.storedVersions.
func (o *oldStorage) versions() []string {
	o.T.Helper()
	d, err := installedDefinition(o.T, o.definition)
	if err != nil {
		o.T.Fatal(err)
	}
	return d.Status.StoredVersions
}

// readable returns how many resources an API server can read in version v1 without anybody who converts.
func (o *oldStorage) readable() (int, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(webApp(o.env, o.group, "v1", "", nil).GroupVersionKind())
	err := harness.Suite.Admin.List(o.T.Context(), all, client.InNamespace(o.Namespace))
	return len(all.Items), err
}

// migrates returns the command that migrates as the user of a test.
func (o *oldStorage) migrates(args ...string) *exec.Cmd {
	return exec.CommandContext(o.T.Context(), harness.Suite.Operetta, append([]string{"crd", "migrate", o.definition, "--kubeconfig", o.AdminKubeconfig()}, args...)...)
}

// migrate runs the command, and returns what it says and its exit code.
func (o *oldStorage) migrate(args ...string) (string, int) {
	o.T.Helper()
	out, err := o.migrates(args...).CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case failed:
		return string(out), exit.ExitCode()
	case err != nil:
		o.T.Fatal(err)
	}
	return string(out), 0
}

// create creates resources, of which the operator serves none: nothing but the migration writes them.
func (o *oldStorage) create(n int) {
	o.T.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error {
			u := webApp(o.env, o.group, "v1alpha1", fmt.Sprintf("shop-%03d", i), map[string]any{"image": "nginx:1.25", "servers": map[string]any{"count": int64(2)}})
			return harness.Suite.Admin.Create(o.T.Context(), u)
		})
	}
	if err := group.Wait(); err != nil {
		o.T.Fatal(err)
	}
}

// patched returns how often resources were patched since a mark.
func (o *oldStorage) patched(from controlplane.AuditMark) int {
	o.T.Helper()
	return len(o.RequestsOf(from, o.AdminUser()).Filter(func(e controlplane.AuditEvent) bool { return e.Resource == "webapps" && e.Verb == "patch" }))
}

// newOldStorage starts an operator that converts WebApps and reconciles none, and stores some in the old version.
func newOldStorage(t *testing.T, group string, n int) (*oldStorage, *harness.Webhooks) {
	t.Helper()
	o := &oldStorage{env: newEnv(t), group: group, definition: "webapps." + group, dir: copyOfWebApp(t, group, asItIs)}
	w := startConverting(t, o.env, o.dir, o.definition, "--selector", "served=yes")
	o.stored("v1alpha1")
	harness.Eventually(t, "the API server to store the old version", func() error {
		err := harness.Suite.Admin.Create(t.Context(), webApp(o.env, group, "v1alpha1", "first", map[string]any{"image": "nginx:1.25"}))
		return client.IgnoreAlreadyExists(err)
	})
	o.create(n - 1)
	o.stored("v1")
	if got := slices.Sorted(slices.Values(o.versions())); !slices.Equal(got, []string{"v1", "v1alpha1"}) {
		t.Fatalf("the versions %q are stored", got)
	}
	return o, w
}

// withoutOld writes the package without its old version, and returns the folder.
func (o *oldStorage) withoutOld() string {
	o.T.Helper()
	dir := filepath.Join(o.T.TempDir(), "cue", "webapp")
	if err := os.CopyFS(dir, os.DirFS(o.dir)); err != nil {
		o.T.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "v1alpha1.cue")); err != nil {
		o.T.Fatal(err)
	}
	return dir
}

func TestF30ObjectsOfAnOldVersionAreStoredAnewOnRequestAndTheVersionCanGo(t *testing.T) {
	t.Parallel()
	o, w := newOldStorage(t, "zmigrated.example.com", storedOld())
	o.Operator.Stop()
	if n, err := o.readable(); err == nil {
		t.Fatalf("%d resources can be read without a conversion, so they are stored in the new version already", n)
	}
	if out, code := o.migrate(); code != 1 || !strings.Contains(out, "conversion webhook for "+o.group+"/v1alpha1") || !strings.Contains(out, o.Namespace+"/first") {
		t.Errorf("without its webhook it ends with %d: %s", code, out)
	}
	without := o.withoutOld()
	o.ExpectRefusals("it reports a broken package to the resources of all packages of that name, those of other tests among them", "webapps", "example.com")
	refusing := o.StartOperator(without, "--selector", "served=yes")
	refusing.ExpectLog("objects may be stored in version v1alpha1", "operetta crd migrate "+o.definition)
	refusing.Stop()

	o.StartOperator(append([]string{o.dir, "--selector", "served=yes"}, w.Flags()...)...)
	harness.Eventually(t, "the resources to be converted", func() error {
		_, err := o.readable()
		return err
	})
	from := harness.MarkAudit(t)
	if out, code := o.migrate("--dry-run"); code != 0 || !strings.Contains(out, fmt.Sprint(storedOld(), " resources would be stored in version v1; resources may be stored in v1alpha1")) {
		t.Errorf("a dry run ends with %d: %s", code, out)
	}
	if n := o.patched(from); n > 0 {
		t.Errorf("a dry run sent %d patches", n)
	}

	killed := o.migrates()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "some resources to be stored", func() error {
		if n := o.patched(from); n < killedAfter {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed
	if n := o.patched(from); n >= storedOld() {
		t.Fatalf("it was killed too late, after %d patches", n)
	}
	if got := o.versions(); !slices.Contains(got, "v1alpha1") {
		t.Errorf("a migration that was killed leaves the versions %q", got)
	}
	o.migrateTwice()
	if got := o.versions(); !slices.Equal(got, []string{"v1"}) {
		t.Errorf("the versions %q are stored", got)
	}
	if out, code := o.migrate(); code != 0 || !strings.Contains(out, "nothing to do") {
		t.Errorf("once more it ends with %d: %s", code, out)
	}
	o.Operator.Stop()
	if n, err := o.readable(); err != nil || n != storedOld() {
		t.Errorf("%d of %d resources can be read without a conversion: %v", n, storedOld(), err)
	}
	o.StartOperator(without, "--selector", "served=yes").ExpectLog("package loaded")
	harness.Eventually(t, "a definition without the old version", func() error {
		d, err := installedDefinition(t, o.definition)
		if err != nil || len(d.Spec.Versions) != 1 {
			return errors.Join(err, harness.ErrNotYet)
		}
		n, err := o.readable()
		if err != nil || n != storedOld() {
			return fmt.Errorf("%d can be read: %w", n, err)
		}
		return nil
	})
}

// migrateTwice runs two migrations at once.
func (o *oldStorage) migrateTwice() {
	o.T.Helper()
	var group errgroup.Group
	for range 2 {
		group.Go(func() error {
			out, err := o.migrates().CombinedOutput()
			if err != nil || !strings.Contains(string(out), fmt.Sprint(storedOld(), " resources stored in version v1; nothing is stored in v1alpha1 any more")) {
				return fmt.Errorf("%w: %s", errors.Join(err, errors.New("a migration failed")), out)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		o.T.Error(err)
	}
}
