package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"operetta.dev/test/internal/markdown"
)

// An example is a package that a page shows: its files, and what refuses it if it is a wrong one.
type example struct {
	at, name string
	files    map[string]string
	// refused is the message that the page quotes below a wrong example.
	refused string
}

// clause is the package clause with which an example begins.
var clause = regexp.MustCompile(`^package ([a-z]+)\n`)

// examplesOf groups the blocks of a page by their package. A block of text below a package is the message
// that refuses it. It errors if the page shows none.
func examplesOf(t *testing.T, page markdown.Document) []*example {
	t.Helper()
	blocks, err := page.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	var out []*example
	for _, b := range blocks {
		found := clause.FindStringSubmatch(b.Text)
		switch {
		case b.Language == "text" && len(out) > 0:
			out[len(out)-1].refused = b.Text
			continue
		case b.Language != "cue" || found == nil:
			continue
		}
		i := slices.IndexFunc(out, func(e *example) bool { return e.name == found[1] })
		if i < 0 {
			i = len(out)
			out = append(out, &example{at: b.At, name: found[1], files: map[string]string{}})
		}
		file := found[1] + ".cue"
		if strings.Contains(b.Text, "\ntests: ") {
			file = found[1] + "_test.cue"
		}
		if _, twice := out[i].files[file]; twice {
			t.Fatalf("%s: package %s has two blocks for %s", b.At, found[1], file)
		}
		out[i].files[file] = b.Text + "\n"
	}
	return out
}

// play runs vet and then test on an example, and returns what they print and whether both succeed.
func (e *example) play(t *testing.T) (string, bool) {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, e.name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range e.files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	printed := ""
	for _, args := range [][]string{{"vet", "--strict", "./" + e.name}, {"test", "./" + e.name}} {
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		printed += string(out)
		if err != nil {
			return printed, false
		}
	}
	return printed, true
}

func TestExamplesOfTheGuidesWork(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		page         string
		right, wrong int
		reason       string
	}{
		"cookbook":    {page: "docs/cookbook.md", right: 6, reason: "each recipe is a package that a reader copies"},
		"agents":      {page: "docs/agents.md", right: 6, wrong: 6, reason: "each rule has a right and a wrong example"},
		"helm":        {page: "docs/helm.md", right: 1, reason: "the page shows a chart as a package"},
		"kubebuilder": {page: "docs/kubebuilder.md", right: 1, reason: "the page shows a reconciler as a package"},
		"kro":         {page: "docs/kro.md", right: 1, reason: "the page shows a ResourceGraphDefinition as a package"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			right, wrong := 0, 0
			for _, e := range examplesOf(t, read(t, tt.page)) {
				if e.refused == "" {
					right++
				} else {
					wrong++
				}
				t.Run(e.name, func(t *testing.T) {
					t.Parallel()
					e.check(t)
				})
			}
			if right != tt.right || wrong != tt.wrong {
				t.Errorf("%s has %d right and %d wrong examples, want %d and %d: %s", tt.page, right, wrong, tt.right, tt.wrong, tt.reason)
			}
		})
	}
}

// check holds an example against what the page says about it.
func (e *example) check(t *testing.T) {
	t.Helper()
	printed, ok := e.play(t)
	switch {
	case e.refused != "" && ok:
		t.Errorf("%s: the example is not refused:\n%s", e.at, printed)
	case e.refused != "" && !strings.Contains(printed, e.refused):
		t.Errorf("%s: the message is not %q:\n%s", e.at, e.refused, printed)
	case e.refused == "" && !ok:
		t.Errorf("%s: the example is refused:\n%s", e.at, printed)
	case e.refused == "" && (len(e.files) != 2 || !regexp.MustCompile(`(?m)^[1-9][0-9]* passed, 0 failed$`).MatchString(printed)):
		t.Errorf("%s: the example has %d files, and not a package and a test that runs:\n%s", e.at, len(e.files), printed)
	}
}
