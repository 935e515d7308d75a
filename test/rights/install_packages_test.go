package rights

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// importingBody renders a ConfigMap whose name comes from a package below the folder, and another one that is deleted before it.
const importingBody = `
#Spec: text: string | *"a"
components: {
	web: objects: settings: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(names.prefix)-\(cr.metadata.name)", data: {text: cr.spec.text, version: "VERSION"}}
	after: {
		dependsOn: web: {}
		objects: last: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "last-\(cr.metadata.name)"}
	}
}
`

// A folder is printed as a Package: the operator serves it with the roles that are printed beside it, and what only a Package can have, such as
// a canary, stays when the folder is printed and applied again.
func TestAFolderThatIsPrintedAsAPackageIsServedAndMayHaveACanary(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := harness.NewEnv(t)
	home := s.Namespace + "-operator"
	p, account, dir := s.NewPackageObject("printed"), home+"/operator", t.TempDir()
	t.Cleanup(func() { harness.RemoveForGood(t, p.Ref()) })
	// The package is in a folder of a module, and imports one below it.
	write := func(version string) {
		t.Helper()
		const imported = `import "operetta.dev/schemas/operator"`
		text := p.Text(strings.ReplaceAll(importingBody, "VERSION", version))
		if strings.Count(text, imported) != 1 {
			t.Fatalf("the package is not what this test knows:\n%s", text)
		}
		text = strings.Replace(text, imported, imported+"\nimport \"example.com/ops/printed/names\"", 1)
		for file, text := range map[string]string{
			"cue.mod/module.cue":  "module: \"example.com/ops@v0\"\nlanguage: version: \"v0.17.0\"\n",
			"printed/printed.cue": text, "printed/names/names.cue": "package names\n\nprefix: \"settings\"\n",
		} {
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700); err != nil {
				t.Fatal(err)
			}
			harness.WriteFile(t, filepath.Join(dir, file), text)
		}
	}
	install := func(version string) []*unstructured.Unstructured {
		t.Helper()
		write(version)
		printed := operetta(t, "install", filepath.Join(dir, "printed"), "--as-packages", "--package-selector", "test="+s.Namespace, "--namespace", s.Namespace, "--service-account", account)
		applyTwice(t, printed)
		return objectsIn(t, printed)
	}
	// An operator that has the folder comes first.
	write("a")
	o := s.StartOperator(filepath.Join(dir, "printed"))
	first := s.Create(p.Thing(s, "one", nil))
	s.ExpectResourceReady(first)
	settings := s.Get("ConfigMap", "settings-one").GetUID()
	o.Stop()

	objects := install("a")
	var deployment appsv1.Deployment
	decoded(t, objects, "Deployment", "operator", &deployment)
	s.ActAsAccount(account)
	from := harness.MarkAudit(t)
	s.StartOperator(append(unpacked(t, deployment.Spec.Template.Spec, objects), "--leader-elect-namespace", home)...)
	p.Expect("Ready", "True", "Served")
	crs := []*unstructured.Unstructured{first, s.Create(p.Thing(s, "two", nil))}
	for _, cr := range crs {
		s.ExpectResourceReady(cr)
		s.ExpectData("settings-"+cr.GetName(), "version", "a")
	}

	s.Patch(p.Ref(), map[string]any{"spec": map[string]any{"canary": map[string]any{"share": "50%", "readyFor": "1s"}}})
	install("b")
	s.ExpectObject(p.Ref(), "to have promoted a canary", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "canary", "phase") != "Promoted" {
			return harness.ErrNotYet
		}
		return nil
	})
	for _, cr := range crs {
		s.ExpectData("settings-"+cr.GetName(), "version", "b")
	}
	if got := s.Get("ConfigMap", "settings-one").GetUID(); got != settings {
		t.Errorf("the Package has made the object of the folder again")
	}
	for _, cr := range crs {
		s.Delete(cr)
		s.ExpectGone(cr)
	}
	s.Delete(p.Ref())
	s.ExpectGone(p.Ref())
	requests := s.RequestsOf(from, s.User)
	for _, e := range requests {
		// Resources whose package is missing are looked for where the operator may list them; others are not its own.
		if e.Code == 403 && e.Verb != "list" {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
	compare(t, permissionsOf(rulesFor(t, objects, "operator")), usedIn(requests.Filter(allowed)))
}

// applyTwice applies manifests with Packages as the administrator: kubectl may find their kind only the second time.
func applyTwice(t *testing.T, manifests []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	harness.WriteFile(t, file, string(manifests))
	if _, err := harness.Kubectl(t.Context(), "apply", "--server-side", "-f", file); err != nil && !strings.Contains(err.Error(), `no matches for kind "Package"`) {
		t.Fatal(err)
	}
	apply(t, manifests)
}
