// Package markdown reads the documents of the repository, as far as their tests
// need it: the fenced blocks with what stands before them, the headings, and the
// links. It is no parser of Markdown: it knows the forms in which the documents
// here are written.
package markdown

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Document is one file.
type Document struct {
	// Name is the file's path from the root of the repository.
	Name string
	Text string
}

// Read reads a document, whose name is its path from the root.
func Read(root, name string) (Document, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return Document{}, err
	}
	return Document{Name: name, Text: string(data)}, nil
}

// All reads every document: the README and what is below docs.
func All(root string) ([]Document, error) {
	var out []Document
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/design/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			name, err := filepath.Rel(root, f)
			if err != nil {
				return nil, err
			}
			d, err := Read(root, filepath.ToSlash(name))
			if err != nil {
				return nil, err
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// A Block is one fenced block of a document.
type Block struct {
	// At is where it begins, as editors find it: README.md:12.
	At       string
	Language string
	Text     string
	// Before is the paragraph above it.
	Before string
}

// Blocks returns the fenced blocks. It errors when one has no end.
func (d Document) Blocks() ([]Block, error) {
	var out []Block
	var open *Block
	var body []string
	var above paragraph
	for i, line := range strings.Split(d.Text, "\n") {
		language, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &Block{At: fmt.Sprintf("%s:%d", d.Name, i+1), Language: language, Before: above.text()}
		case isFence:
			open.Text = strings.Join(body, "\n")
			out = append(out, *open)
			open, body, above = nil, nil, paragraph{}
		case open != nil:
			body = append(body, line)
		default:
			above.add(line)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block has no end", open.At)
	}
	return out, nil
}

// A paragraph collects lines and forgets them when another one begins.
type paragraph struct {
	lines []string
	over  bool
}

func (p *paragraph) add(line string) {
	switch {
	case strings.TrimSpace(line) == "":
		p.over = true
	case p.over:
		p.lines, p.over = []string{line}, false
	default:
		p.lines = append(p.lines, line)
	}
}

func (p *paragraph) text() string { return strings.Join(p.lines, "\n") }

// quoted is what stands between backquotes.
var quoted = regexp.MustCompile("`([^`\n]+)`")

// Target returns the file with one of the extensions that the paragraph before the
// block names last.
func (b Block) Target(extensions ...string) (string, error) {
	found := ""
	for _, m := range quoted.FindAllStringSubmatch(b.Before, -1) {
		for _, e := range extensions {
			if strings.HasSuffix(m[1], e) && !strings.Contains(m[1], " ") {
				found = m[1]
			}
		}
	}
	if found == "" {
		return "", fmt.Errorf("the paragraph before this block names no file that ends in %s", strings.Join(extensions, " or "))
	}
	return found, nil
}

// Files returns the CUE and YAML files of a document in their first version, by name. It errors if no
// file is named above a block of CUE or YAML.
func (d Document) Files() (map[string]string, error) {
	blocks, err := d.Blocks()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, b := range blocks {
		if b.Language != "cue" && b.Language != "yaml" {
			continue
		}
		name, err := b.Target("." + b.Language)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.At, err)
		}
		if _, ok := out[name]; !ok {
			out[name] = b.Text + "\n"
		}
	}
	return out, nil
}

// Versions returns the CUE and YAML files of a document, by name, after each block that writes or changes one.
// What has no file's name above it is an example. It errors if a change does not apply.
func (d Document) Versions() ([]map[string]string, error) {
	blocks, err := d.Blocks()
	if err != nil {
		return nil, err
	}
	var out []map[string]string
	files := map[string]string{}
	for _, b := range blocks {
		name, err := b.Target(".cue", ".yaml")
		switch {
		case err != nil:
			continue
		case b.Language == "diff":
			text, err := b.Edit(files[name])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", b.At, err)
			}
			files[name] = text
		case b.Language == "cue" || b.Language == "yaml":
			files[name] = b.Text + "\n"
		default:
			continue
		}
		out = append(out, maps.Clone(files))
	}
	return out, nil
}

// Edit returns a text after the change of a block that is a diff without line numbers. It errors if what
// the diff changes is not in the text, or more than once.
func (b Block) Edit(text string) (string, error) {
	var old, changed []string
	for line := range strings.SplitSeq(b.Text, "\n") {
		kind, rest := line[:1], line[1:]
		if kind != "+" {
			old = append(old, rest)
		}
		if kind != "-" {
			changed = append(changed, rest)
		}
	}
	before := strings.Join(old, "\n") + "\n"
	if n := strings.Count(text, before); n != 1 {
		return "", fmt.Errorf("what the diff changes is there %d times, not once:\n%s", n, before)
	}
	return strings.Replace(text, before, strings.Join(changed, "\n")+"\n", 1), nil
}

// A Section is a heading and what stands below it, up to the next heading.
type Section struct {
	Level       int
	Title, Text string
}

var heading = regexp.MustCompile(`^(#+) (.*)$`)

// Sections returns the sections, without what stands above the first heading.
func (d Document) Sections() []Section {
	var out []Section
	fenced := false
	for line := range strings.Lines(d.Text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		m := heading.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case m != nil && !fenced:
			out = append(out, Section{Level: len(m[1]), Title: m[2]})
		case len(out) > 0:
			out[len(out)-1].Text += line
		}
	}
	return out
}

// Anchor is the fragment under which a page shows the section.
func (s Section) Anchor() string {
	var b strings.Builder
	for _, r := range strings.ToLower(s.Title) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteRune('-')
		}
	}
	return b.String()
}

var link = regexp.MustCompile(`\[[^\]\n]+\]\(([^)\s]+)\)`)

// Links returns the targets of the links outside code.
func (d Document) Links() []string {
	var out []string
	fenced := false
	for line := range strings.Lines(d.Text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(quoted.ReplaceAllString(line, "code"), -1) {
			out = append(out, m[1])
		}
	}
	return out
}
