package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the folder of the repository.
const root = "../.."

// A block is one fenced block of a document.
type block struct {
	file     string // of the document
	line     int    // of the opening fence
	language string
	text     string
	before   string // the paragraph above it
}

// at returns where the block is, as editors find it.
func (b block) at() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

// quoted is what stands between backquotes.
var quoted = regexp.MustCompile("`([^`\n]+)`")

// target returns the file that the paragraph before the block names last, among
// those with one of the extensions.
func (b block) target(extensions ...string) (string, error) {
	found := ""
	for _, m := range quoted.FindAllStringSubmatch(b.before, -1) {
		for _, e := range extensions {
			if strings.HasSuffix(m[1], e) && !strings.Contains(m[1], " ") {
				found = m[1]
			}
		}
	}
	if found == "" {
		return "", fmt.Errorf("the paragraph before this block names no file %s", strings.Join(extensions, " or "))
	}
	return found, nil
}

// blocks returns the fenced blocks of a document, which is named from the root.
func blocks(t *testing.T, name string) []block {
	t.Helper()
	var out []block
	var open *block
	var paragraph, body []string
	for i, line := range strings.Split(read(t, name), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{file: name, line: i + 1, language: fence, before: strings.Join(paragraph, "\n")}
		case isFence:
			open.text = strings.Join(body, "\n")
			out = append(out, *open)
			open, body, paragraph = nil, nil, nil
		case open != nil:
			body = append(body, line)
		case strings.TrimSpace(line) != "":
			if i > 0 && len(paragraph) > 0 && paragraph[len(paragraph)-1] == "" {
				paragraph = nil
			}
			paragraph = append(paragraph, line)
		default:
			paragraph = append(paragraph, "")
		}
	}
	if open != nil {
		t.Errorf("%s: the block has no end", open.at())
	}
	return out
}

// documents returns the names of all documents, from the root.
func documents(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/design/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			name, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, filepath.ToSlash(name))
		}
	}
	return out
}

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
