package schemas_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

func TestTreesHoldWhatIsInTheRepository(t *testing.T) {
	repository := os.DirFS("..")
	for name, form := range forms {
		tree := form()
		if err := fstest.TestFS(tree, names(tree)...); err != nil {
			t.Errorf("%s is no file system: %v", name, err)
		}
		for _, file := range names(tree) {
			got, err := fs.ReadFile(tree, file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := fs.ReadFile(repository, file)
			if err != nil {
				t.Fatal(err)
			}
			lightened := name == "light" && strings.HasPrefix(file, "schemas/k8s/")
			if !lightened && string(got) != string(want) {
				t.Errorf("%s: %s is not the file of the repository", name, file)
			}
		}
	}
}

func TestEveryPartIsThere(t *testing.T) {
	for name, form := range forms {
		for _, file := range []string{
			"schemas/operator/operator.cue", "schemas/health/health.cue", "schemas/k8s/core/v1/types.cue",
			"schemas/k8s/meta/v1/types.cue", "schemas/k8s/api/resource/types.cue",
		} {
			if _, err := fs.Stat(form(), file); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestTypesAreOfTheVersionOfTheEngine holds the generator to the versions that the engine is built with: of
// Kubernetes, so that the types are those of its client, and of CUE, so that one formatter is used.
func TestTypesAreOfTheVersionOfTheEngine(t *testing.T) {
	engine, generator := versions(t, "../go.mod"), versions(t, "internal/k8sgen/go.mod")
	for _, module := range []string{"k8s.io/api", "k8s.io/apimachinery", "cuelang.org/go"} {
		if diff := cmp.Diff(engine[module], generator[module]); diff != "" {
			t.Errorf("%s: change internal/k8sgen/go.mod and run go generate ./schemas (-engine +generator):\n%s", module, diff)
		}
	}
}

// versions reads the requirements of a go.mod.
func versions(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(file, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, r := range parsed.Require {
		found[r.Mod.Path] = r.Mod.Version
	}
	return found
}
