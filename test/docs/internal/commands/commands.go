// Package commands knows every command that the documents show: those of fenced blocks, of
// the examples of the commands' own help, and of the running text as far as they begin with
// one of this product's tools. Each is played, or there is a reason why not.
package commands

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"operetta.dev/test/internal/markdown"
)

// Whole are the documents whose blocks are played from the first to the last, with what
// they print, but for the commands that have a reason in Left.
var Whole = []string{"README.md", "docs/tutorial.md", "docs/install.md", "docs/own-repository.md"}

// A Command is one command that a document shows.
type Command struct {
	// At is where it stands, as editors find it.
	At   string
	Line string
	// Inline says that it stands in the running text.
	Inline bool
}

// inline is a command between backquotes.
var inline = regexp.MustCompile("`((?:operetta|make|go|cue) [^`]+)`")

// example is a command in the examples of a command's help.
var example = regexp.MustCompile(`^  ((?:operetta|kubectl) .*)$`)

// In returns the commands of a document, of one that is played as a whole those in Left only.
func In(d markdown.Document) ([]Command, error) {
	blocks, err := d.Blocks()
	if err != nil {
		return nil, err
	}
	var out []Command
	for _, b := range blocks {
		for _, c := range inBlock(b) {
			if _, left := Left[c.Line]; left || !slices.Contains(Whole, d.Name) {
				out = append(out, c)
			}
		}
	}
	return append(out, inText(d)...), nil
}

// inBlock returns the commands of a fenced block.
func inBlock(b markdown.Block) []Command {
	var out []Command
	usage := false
	for line := range strings.SplitSeq(b.Text, "\n") {
		switch m := example.FindStringSubmatch(line); {
		case b.Language == "sh":
			out = append(out, Command{At: b.At, Line: line})
		case b.Language == "console" && strings.HasPrefix(line, "$ "):
			out = append(out, Command{At: b.At, Line: line[2:]})
		case b.Language != "":
		case strings.HasSuffix(line, ":"):
			usage = line == "Usage:"
		case m != nil && !usage:
			out = append(out, Command{At: b.At, Line: m[1]})
		}
	}
	return out
}

// inText returns the commands of the running text, one of which may be broken over lines.
func inText(d markdown.Document) []Command {
	var out []Command
	fenced := false
	var text strings.Builder
	for line := range strings.Lines(d.Text) {
		isFence := strings.HasPrefix(line, "```")
		if isFence {
			fenced = !fenced
		}
		if fenced || isFence {
			line = "\n" // lines keep their numbers
		}
		text.WriteString(line)
	}
	for _, m := range inline.FindAllStringSubmatchIndex(text.String(), -1) {
		at := fmt.Sprintf("%s:%d", d.Name, strings.Count(text.String()[:m[0]], "\n")+1)
		line := strings.Join(strings.Fields(text.String()[m[2]:m[3]]), " ")
		out = append(out, Command{At: at, Line: line, Inline: true})
	}
	return out
}

// Name returns which command of operetta, with which flags, is only named: it has no
// arguments that it could run with.
func (c Command) Name() (sub string, flags []string, ok bool) {
	words := strings.Fields(c.Line)
	if !c.Inline || words[0] != "operetta" || len(words) < 2 {
		return "", nil, false
	}
	for _, w := range words[2:] {
		if !strings.HasPrefix(w, "--") {
			return "", nil, false
		}
		flag, _, _ := strings.Cut(w, "=")
		flags = append(flags, flag)
	}
	return words[1], flags, true
}

// Target returns which target of make is named.
func (c Command) Target() (string, bool) {
	words := strings.Fields(c.Line)
	return words[len(words)-1], c.Inline && len(words) == 2 && words[0] == "make"
}
