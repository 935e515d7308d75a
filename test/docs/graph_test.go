package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/source"
	"sigs.k8s.io/yaml"
)

// TestThePictureOfTheGraphIsCurrent draws the reference package for its sample, as `operetta graph` does. With
// -update it writes the picture.
func TestThePictureOfTheGraphIsCurrent(t *testing.T) {
	t.Parallel()
	snapshot, err := source.Loader{}.Folder(filepath.Join(root, "cue", "webapp"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "samples", "webapp.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cr map[string]any
	if err := yaml.Unmarshal(text, &cr); err != nil {
		t.Fatal(err)
	}
	out, err := render.Render(t.Context(), p, render.Input{CR: cr})
	if err != nil {
		t.Fatal(err)
	}
	got, file := string(out.Picture("WebApp/nginx-app").SVG()), filepath.Join(root, "docs", "graph.svg")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/graph.svg is not what operetta graph draws; run this test with -update (-want +got):\n%s", diff)
	}
}
