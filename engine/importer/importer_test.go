package importer_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/engine/importer"
	"operetta.dev/engine/program"
	"operetta.dev/engine/scaffold"
	"operetta.dev/engine/source"
	"operetta.dev/engine/testcase"
	"operetta.dev/engine/vet"
)

// objectsIn returns the objects of a stream of YAML.
func objectsIn(t *testing.T, text string) []importer.Object {
	t.Helper()
	var out []importer.Object
	for _, doc := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		items, isList := o["items"].([]any)
		for _, item := range items {
			manifest, _ := item.(map[string]any)
			out = append(out, importer.Object{Manifest: manifest, At: "in.yaml:1"})
		}
		if len(o) > 0 && !isList {
			out = append(out, importer.Object{Manifest: o, At: "in.yaml:1"})
		}
	}
	return out
}

func packageOf(name string) scaffold.Package {
	return scaffold.Package{Name: name, Group: "imported.example.com", Kind: scaffold.KindOf(name)}
}

var releaseOf = regexp.MustCompile(`(?m)^# release: (\w+)$`)

// TestImportRendersWhatChartsAndExamplesRender imports objects as public charts render them. Import itself compares what
// the package renders with them; here the package passes vet and its test, too, which rolls it out and removes it.
func TestImportRendersWhatChartsAndExamplesRender(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/charts.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		name := strings.TrimSuffix(file.Name, ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := importer.Options{Package: packageOf(name)}
			if m := releaseOf.FindSubmatch(file.Data); m != nil {
				o.Release = string(m[1])
			}
			result, err := importer.Import(t.Context(), objectsIn(t, string(file.Data)), o)
			if err != nil {
				t.Fatal(err)
			}
			p, tests := load(t, result.Files, name)
			e := vet.Examine(p, nil)
			faults, warnings, unknown := e.All()
			faults = append(faults, e.Types(faults)...)
			if len(faults)+len(warnings) > 0 {
				t.Errorf("vet: %v %v (%v)", faults, warnings, unknown)
			}
			results, _, err := testcase.Run(t.Context(), p, tests)
			if err != nil || len(results) != 1 || len(results[0].Differences) > 0 {
				t.Errorf("%v %v", err, results)
			}
		})
	}
}

// load loads the package in some files, and its tests.
func load(t *testing.T, files []scaffold.File, name string) (*program.Program, []testcase.Test) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		at := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, f.Content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	snapshot, err := source.Loader{}.FolderWithTests(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	p, tests, err := testcase.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return p, tests
}

// TestImportRefusesWhatItCannotKeep has objects that no package can render as they are, with what is said.
func TestImportRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	const cm = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		reason, text string
		secrets      bool
		want         []string
	}{
		"nothing":               {"most likely the wrong file", "", false, []string{"there is no object to import"}},
		"a Secret":              {"who may read the package could read it", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: dg==}", false, []string{"in.yaml:1: Secret a: its content would stand in the package; refer to it as an input, or import it with --secrets"}},
		"a Secret on request":   {"somebody has decided", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: dg==}", true, nil},
		"an empty Secret":       {"a controller fills it", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {kubernetes.io/service-account.name: x}}\ntype: kubernetes.io/service-account-token", false, nil},
		"a name that is made":   {"it would be another object each time", "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}", false, []string{"in.yaml:1: the Pod has no name but generateName, so that it would be another object each time"}},
		"the same object twice": {"a package cannot have one object in two components", cm + "---\n" + cm, false, []string{"in.yaml:1: ConfigMap a is there twice, also at in.yaml:1"}},
		"a kind that nobody knows": {
			"whether it has a namespace is not in the object", "apiVersion: x.example.com/v1\nkind: Thing\nmetadata: {name: a}", false,
			[]string{"in.yaml:1: it is not known whether a Thing is namespaced; give its CustomResourceDefinition, too"},
		},
		"values, and no object":    {"it is another kind of file", "replicas: 3", false, []string{"in.yaml:1: it has no apiVersion and kind"}},
		"a name that is CUE":       {"it would stand in a comment", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a\\nb: 1\"}", false, []string{`in.yaml:1: "a\nb: 1" in namespace "" is no name of a ConfigMap`}},
		"a kind that is CUE":       {"it would stand in a comment", "apiVersion: v1\nkind: \"A\\nb: 1\"\nmetadata: {name: a}", false, []string{`in.yaml:1: "A\nb: 1" of "v1" is no kind`}},
		"a text that is CUE":       {"it is quoted", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: \"\\\\(z) #a _b\"}", false, nil},
		"an object of an operator": {"what the engine marks is left out, with a note", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {operetta.dev/owner: x}}", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			_, err := importer.Import(t.Context(), objectsIn(t, c.text), importer.Options{Package: packageOf("shop"), Secrets: c.secrets})
			if refused, ok := errors.AsType[*importer.RefusedError](err); ok {
				got = refused.Reasons
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: reasons (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
