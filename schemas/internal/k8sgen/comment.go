package main

import (
	"go/ast"
	"strings"
)

// A comment is a doc comment, split into its text and its markers.
type comment struct {
	text    []string
	markers map[string]bool
}

// has reports whether the comment has a marker, such as optional for "+optional".
func (c comment) has(marker string) bool {
	return c.markers[marker]
}

// parseDoc splits a doc comment. As in the published API reference, it drops the text after "---" and
// lines that begin with TODO, which are for the maintainers of Kubernetes.
func parseDoc(group *ast.CommentGroup) comment {
	c := comment{markers: map[string]bool{}}
	if group == nil {
		return c
	}
	internal := false
	for line := range strings.SplitSeq(group.Text(), "\n") {
		line = strings.TrimRight(line, " \t")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "+"):
			name, _, _ := strings.Cut(trimmed[1:], "=")
			c.markers[name] = true
		case trimmed == "---":
			internal = true
		case internal, strings.HasPrefix(trimmed, "TODO"):
		default:
			c.text = append(c.text, line)
		}
	}
	c.text = tidy(c.text)
	return c
}

// tidy removes empty lines at both ends, and repeated empty lines in between.
func tidy(lines []string) []string {
	var out []string
	for _, line := range lines {
		if line == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, line)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}
