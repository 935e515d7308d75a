package vet_test

import (
	"os"
	"path/filepath"
	"testing"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/vet"
)

// TestTheDefinitionsOfAModuleAreRead: people put there what kubectl prints, which is a List.
func TestTheDefinitionsOfAModuleAreRead(t *testing.T) {
	t.Parallel()
	const shop = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: shops.a.example}, spec: {group: a.example, scope: Cluster, names: {kind: Shop}}}`
	for name, row := range map[string]struct {
		reason, text string
		want         int
	}{
		"documents":    {"each is one", shop + "\n---\n\n---\n" + shop + "\n", 2},
		"a list":       {"kubectl get -o yaml prints it", "{apiVersion: v1, kind: List, items: [" + shop + ", " + shop + "]}\n", 2},
		"other things": {"they define nothing", "{apiVersion: v1, kind: ConfigMap}\n", 0},
		"nothing":      {"a file may be empty", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := vet.ModuleDefinitions(moduleWith(t, func(crds string) error {
				return os.WriteFile(filepath.Join(crds, "all.yaml"), []byte(row.text), 0o600)
			}))
			if err != nil || len(got) != row.want {
				t.Fatalf("%s: there are %d definitions, want %d: %v", row.reason, len(got), row.want, err)
			}
			for _, d := range got {
				if kind, scope, _ := cluster.DefinedBy(d); kind.Kind != "Shop" || scope != cluster.ClusterScoped {
					t.Errorf("%s: it defines %s, %s", row.reason, kind, scope)
				}
			}
		})
	}
}

// TestWhatIsNoFileHoldsUpNoCommand: a device never ends, as a pipe that nobody writes to.
func TestWhatIsNoFileHoldsUpNoCommand(t *testing.T) {
	t.Parallel()
	if _, err := vet.ModuleDefinitions(moduleWith(t, func(crds string) error { return os.Symlink("/dev/zero", filepath.Join(crds, "all.yaml")) })); err == nil {
		t.Error("a device is read")
	}
}

// moduleWith returns the folder of a module with a folder crds.
func moduleWith(t *testing.T, fill func(crds string) error) string {
	t.Helper()
	dir := t.TempDir()
	crds := filepath.Join(dir, "crds")
	for _, folder := range []string{crds, filepath.Join(dir, "cue.mod")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cue.mod", "module.cue"), []byte("module: \"a.example\"\nlanguage: version: \"v0.17.0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fill(crds); err != nil {
		t.Fatal(err)
	}
	return dir
}
