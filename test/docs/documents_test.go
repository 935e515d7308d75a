package docs

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/format"
	"operetta.dev/test/docs/internal/markdown"
)

// root is the folder of the repository.
const root = "../.."

func read(t *testing.T, name string) markdown.Document {
	t.Helper()
	d, err := markdown.Read(root, name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func documents(t *testing.T) []markdown.Document {
	t.Helper()
	all, err := markdown.All(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, d := range documents(t) {
		for _, link := range d.Links() {
			if strings.Contains(link, "://") {
				continue // what others publish is theirs to keep
			}
			file, anchor, _ := strings.Cut(link, "#")
			target := d.Name
			if file != "" {
				target = path.Join(path.Dir(d.Name), file)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: there is no %s", d.Name, target)
				continue
			}
			if anchor != "" && !hasAnchor(read(t, target), anchor) {
				t.Errorf("%s: %s has no section %s", d.Name, target, anchor)
			}
		}
	}
}

func hasAnchor(d markdown.Document, anchor string) bool {
	return slices.ContainsFunc(d.Sections(), func(s markdown.Section) bool { return s.Anchor() == anchor })
}

func TestCUEInDocumentsIsWrittenAsCueFmtWritesIt(t *testing.T) {
	for _, d := range documents(t) {
		blocks, err := d.Blocks()
		if err != nil {
			t.Error(err)
		}
		for _, b := range blocks {
			if b.Language != "cue" {
				continue
			}
			want, err := format.Source([]byte(b.Text + "\n"))
			if err != nil {
				t.Errorf("%s: %v", b.At, err)
			} else if string(want) != b.Text+"\n" {
				t.Errorf("%s: cue fmt would write:\n%s", b.At, want)
			}
		}
	}
}
