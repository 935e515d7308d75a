package program_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/inline"
)

func TestAPackageMayRenderTheKindsOfItsText(t *testing.T) {
	t.Parallel()
	const plain = `components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}` + "\n"
	for name, row := range map[string]struct {
		reason, imports, body string
		may, never            []string
	}{
		"constants": {"each object has its group and its kind", "", plain + `
components: b: objects: o: {apiVersion: "serving.example.org/v1", kind: "Service", metadata: name: "b"}`,
			[]string{"ConfigMap", "Service.serving.example.org"}, []string{"Secret", "Service", "ConfigMap.example.org", "Namespace"}},
		"a branch": {"another resource takes it", "", plain + `
if cr.spec.size > 3 {components: b: objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "b"}}`,
			[]string{"ConfigMap", "Secret"}, []string{"Service"}},
		"a component that is not wanted": {"another resource wants it", "", plain + `
components: b: {when: cr.spec.size > 3, objects: o: {apiVersion: "v1", kind: "Secret", metadata: name: "b"}}`,
			[]string{"Secret"}, []string{"Service"}},
		"a hook": {"hooks have objects as well", "", plain + `
hooks: afterDeploy: b: objects: o: {apiVersion: "batch/v1", kind: "Job", metadata: name: "b"}`,
			[]string{"Job.batch"}, []string{"Job", "Secret"}},
		"a Kubernetes type": {"the type has the kind", `import apps "operetta.dev/schemas/k8s/apps/v1"` + "\n" + `import net "operetta.dev/schemas/k8s/networking/v1"` + "\n", plain + `
components: b: objects: {
	o: apps.#Deployment & {metadata: name: "b", spec: {selector: {}, template: {}}}
	p: net.#Ingress & {metadata: name: "b"}
}`,
			[]string{"Deployment.apps", "Ingress.networking.k8s.io"}, []string{"StatefulSet.apps", "Deployment", "Ingress", "Ingress.extensions"}},
		"one of two constants": {"which one depends on the resource", "", `
components: a: objects: o: {apiVersion: "v1", kind: *"ConfigMap" | "Secret", metadata: name: "a"}`,
			[]string{"ConfigMap", "Secret"}, []string{"Service"}},
		"a group from the resource": {"the kind may be of any group", "", `
components: a: objects: o: {apiVersion: cr.spec.name, kind: "ConfigMap", metadata: name: "a"}`,
			[]string{"ConfigMap", "ConfigMap.example.org"}, []string{"Secret"}},
		"a kind from the resource":         {"it may be any", "", plain + `components: b: objects: o: {apiVersion: "v1", kind: cr.spec.name, metadata: name: "b"}`, []string{"Namespace", "Secret.example.org"}, nil},
		"a computed kind":                  {"it may be any", "", plain + `components: b: objects: o: {apiVersion: "v1", kind: "X\(cr.spec.name)", metadata: name: "b"}`, []string{"Namespace"}, nil},
		"an object from the resource":      {"it may be any", "", plain + `components: b: objects: o: cr.spec.any`, []string{"Namespace"}, nil},
		"an object without a kind":         {"nobody knows what is added to it", "", plain + `components: b: objects: o: metadata: name: "b"`, []string{"Namespace"}, nil},
		"objects of a loop":                {"nobody knows what is added to them", "", plain + `components: b: objects: {for k, _ in cr.spec.pools {(k): metadata: name: k}}`, []string{"Namespace"}, nil},
		"a pattern for all objects":        {"it adds no object", "", plain + `components: [string]: objects: [string]: {kind: string, metadata: labels: a: "b", ...}`, []string{"ConfigMap"}, []string{"Namespace"}},
		"a kind by a pattern":              {"objects may have it from there", "", plain + `components: [string]: objects: [string]: {kind: *"ConfigMap" | "Secret", ...}`, []string{"ConfigMap", "Secret"}, []string{"Namespace"}},
		"a kind by a pattern that is open": {"it may be any", "", plain + `components: [string]: objects: [string]: {kind: *"ConfigMap" | cr.spec.name, ...}`, []string{"Namespace"}, nil},
		"an input":                         {"what is only read is not rendered", "", plain + `inputs: i: {apiVersion: "v1", kind: "Secret", name: "i"}`, nil, []string{"Secret"}},
		"packages of CUE":                  {"they have no objects", `import "strings"` + "\n", `components: a: objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: strings.ToLower("A")}`, []string{"ConfigMap"}, []string{"Secret"}},
		"no object":                        {"there is no kind", "", `components: a: {}`, nil, []string{"ConfigMap"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inline.Program(t, strings.Replace(head, "\noperator.#", row.imports+"\noperator.#", 1)+row.body)
			expectMayRender(t, p, row.reason, row.may, true)
			expectMayRender(t, p, row.reason, row.never, false)
		})
	}
}

// A package may take whole components from another package of its module, whose text nobody follows.
func TestAPackageThatImportsAnotherMayRenderAnyKind(t *testing.T) {
	t.Parallel()
	const rendered = `{apiVersion: "v1", kind: "Secret", metadata: name: "b"}`
	for name, body := range map[string]string{
		"an object":   `components: b: objects: o: library.objects.o`,
		"objects":     `components: b: objects: library.objects`,
		"a component": `components: b: library.components.b`,
		"components":  `components: library.components`,
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"cue.mod/module.cue":  "module: \"example.com/ops@v0\"\nlanguage: version: \"v0.17.0\"\n",
			"library/library.cue": "package library\n\nobjects: o: " + rendered + "\ncomponents: b: objects: o: " + rendered + "\n",
			"shop/shop.cue":       strings.Replace(head, "\noperator.#", "import \"example.com/ops/library\"\n\noperator.#", 1) + body,
		} {
			path := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		snapshot, err := source.Loader{}.Folder(filepath.Join(dir, "shop"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := program.Load(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		expectMayRender(t, p, name, []string{"Secret", "Namespace"}, true)
	}
}

func expectMayRender(t *testing.T, p *program.Program, reason string, kinds []string, want bool) {
	t.Helper()
	for _, kind := range kinds {
		if got := p.MayRender(schema.ParseGroupKind(kind)); got != want {
			t.Errorf("%s: it may render %s: %t, want %t", reason, kind, got, want)
		}
	}
}
