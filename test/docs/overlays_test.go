package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/source"
	"operetta.dev/test/internal/markdown"
	"sigs.k8s.io/yaml"
)

// blockOf returns the first block of a page in a language.
func blockOf(t *testing.T, page, language string) string {
	t.Helper()
	blocks, err := read(t, page).Blocks()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(blocks, func(b markdown.Block) bool { return b.Language == language })
	if i < 0 {
		t.Fatalf("%s has no block of %s", page, language)
	}
	return blocks[i].Text
}

// TestTheExampleOfAnOverlayWorks runs the commands of the page with the overlay of the page.
func TestTheExampleOfAnOverlayWorks(t *testing.T) {
	t.Parallel()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "labels.cue"), []byte(blockOf(t, "docs/overlays.md", "cue")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		reason, says string
		args         []string
	}{
		{"the package agrees with it", "1 package, 0 faults", []string{"vet", "./cue/webapp"}},
		{"so do its tests", " 0 failed", []string{"test", "./cue/webapp"}},
		{"every object has the label", "example.com/namespace: default", []string{"render", "./cue/webapp", "-f", "config/samples/webapp.yaml"}},
		{"a pod has what is demanded of Deployments", "automountServiceAccountToken: false", []string{"render", "./cue/webapp", "-f", "config/samples/webapp.yaml"}},
	} {
		cmd := exec.CommandContext(t.Context(), path, append(row.args, "--overlay", dir)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), row.says) {
			t.Errorf("%s: %q: %v, want %q in:\n%s", row.reason, row.args, err, row.says, out)
		}
	}
}

func TestTheObjectOfAnOverlayIsOne(t *testing.T) {
	t.Parallel()
	var u unstructured.Unstructured
	if err := yaml.UnmarshalStrict([]byte(blockOf(t, "docs/overlays.md", "yaml")), &u.Object); err != nil {
		t.Fatal(err)
	}
	files, _, err := unstructured.NestedStringMap(u.Object, "spec", "files")
	if err != nil || u.GetKind() != "Overlay" {
		t.Fatalf("%s with the files %v: %v", u.GetKind(), files, err)
	}
	o, err := source.NewOverlay("Overlay/"+u.GetName(), files)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := source.Loader{}.Folder(filepath.Join(root, "cue", "webapp"))
	if err == nil {
		_, err = snapshot.WithOverlays([]source.Overlay{o})
	}
	if err != nil {
		t.Error(err)
	}
}
