package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/format"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/internal/markdown"
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

func TestEveryPageIsInTheIndex(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, link := range read(t, "docs/README.md").Links() {
		file, _, _ := strings.Cut(link, "#")
		listed[path.Join("docs", file)] = true
	}
	for _, d := range documents(t) {
		if path.Dir(d.Name) == "docs" && d.Name != "docs/README.md" && !listed[d.Name] {
			t.Errorf("docs/README.md does not say who needs %s, and why", d.Name)
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

func TestCUEInTheQuestionsExtendsTheReferencePackage(t *testing.T) {
	blocks, err := read(t, "docs/faq.md").Blocks()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Language != "cue" {
			continue
		}
		t.Run(b.At, func(t *testing.T) {
			if err := loadWith(t, b.Text); err != nil {
				t.Error(err)
			}
		})
	}
}

// loadWith loads the reference package with a further file.
func loadWith(t *testing.T, text string) error {
	t.Helper()
	module := t.TempDir()
	dir := filepath.Join(module, "cue", "webapp")
	for _, folder := range []string{"cue.mod", filepath.Join("cue", "webapp")} {
		if err := os.CopyFS(filepath.Join(module, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			return err
		}
	}
	file := fmt.Appendf(nil, "package webapp\n\n%s\n", text)
	if err := os.WriteFile(filepath.Join(dir, "question.cue"), file, 0o600); err != nil {
		return err
	}
	s, err := source.Loader{}.Folder(dir)
	if err != nil {
		return err
	}
	_, err = program.Load(s)
	return err
}

// kinds are the diagrams of Mermaid that the documents draw.
var kinds = []string{"flowchart", "sequenceDiagram", "stateDiagram-v2"}

// No parser of Mermaid is here. What is checked is what is easily wrong: the kind of a diagram,
// and quotes, brackets and subgraphs without an end.
func TestPicturesAreWellFormed(t *testing.T) {
	pictures := 0
	for _, d := range documents(t) {
		blocks, err := d.Blocks()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if b.Language != "mermaid" {
				continue
			}
			pictures++
			if kind, _, _ := strings.Cut(b.Text, "\n"); !slices.Contains(kinds, strings.Fields(kind)[0]) {
				t.Errorf("%s: %q is no kind of diagram", b.At, kind)
			}
			depth := 0
			for line := range strings.SplitSeq(b.Text, "\n") {
				switch words := strings.Fields(line); {
				case len(words) > 0 && words[0] == "subgraph", strings.HasPrefix(b.Text, "state") && strings.HasSuffix(line, "{"):
					depth++
					continue
				case strings.TrimSpace(line) == "end", strings.TrimSpace(line) == "}":
					depth--
					continue
				}
				open := strings.Count(line, "(") + strings.Count(line, "[") + strings.Count(line, "{")
				closed := strings.Count(line, ")") + strings.Count(line, "]") + strings.Count(line, "}")
				if open != closed || strings.Count(line, `"`)%2 != 0 {
					t.Errorf("%s: a bracket or a quote has no end: %s", b.At, line)
				}
			}
			if depth != 0 {
				t.Errorf("%s: a subgraph has no end", b.At)
			}
		}
	}
	if pictures < 9 {
		t.Errorf("%d pictures were found", pictures)
	}
}
