package architecture

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestVersionsAreThoseOfTheProduct holds what the control plane is built from to the versions of the product, where both
// have a module. A package is compiled once for each version of anything that it depends on, so one that differs at the
// bottom, such as golang.org/x/net, makes the first build of everything above it twice as long.
func TestVersionsAreThoseOfTheProduct(t *testing.T) {
	product, programs := versions(t, "go.mod"), versions(t, filepath.Join("test", "controlplane", "binaries", "programs.mod"))
	common := 0
	for path, want := range product {
		got, both := programs[path]
		if !both {
			continue
		}
		common++
		if got != want {
			t.Errorf("programs.mod has %s %s, and the product %s; see Change of versions in test/controlplane/README.md", path, got, want)
		}
	}
	if common < 50 {
		t.Errorf("only %d modules are common to both, which cannot be", common)
	}
}

// versions returns the modules that a go.mod requires.
func versions(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range file.Require {
		out[r.Mod.Path] = r.Mod.Version
	}
	return out
}
