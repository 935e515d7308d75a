package docs

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"operetta.dev/test/internal/markdown"
)

var (
	recordName  = regexp.MustCompile(`^docs/design/(\d{4})-[a-z0-9-]+\.md$`)
	recordState = regexp.MustCompile(`(?m)^\d{4}-\d{2}-\d{2}, (accepted|replaced by \[.*)$`)
)

// longest is how many lines a record has at most: who writes more has not decided.
const longest = 50

func TestRecordsAreShortDatedAndListed(t *testing.T) {
	list := read(t, "docs/design/README.md")
	number := 0
	for _, d := range documents(t) {
		if path.Dir(d.Name) != "docs/design" || d.Name == list.Name {
			continue
		}
		m := recordName.FindStringSubmatch(d.Name)
		number++
		if m == nil || m[1] != fmt.Sprintf("%04d", number) {
			t.Errorf("%s: the name should be %04d-and-some-words.md", d.Name, number)
			continue
		}
		checkRecord(t, d, number)
		if !strings.Contains(list.Text, "("+path.Base(d.Name)+")") {
			t.Errorf("%s is not in %s", d.Name, list.Name)
		}
	}
	if number == 0 {
		t.Error("there are no records")
	}
}

func checkRecord(t *testing.T, d markdown.Document, number int) {
	t.Helper()
	if n := strings.Count(d.Text, "\n"); n > longest {
		t.Errorf("%s has %d lines, and should have %d at most", d.Name, n, longest)
	}
	if !strings.HasPrefix(d.Text, fmt.Sprintf("# %d. ", number)) {
		t.Errorf("%s does not begin with # %d. and a title", d.Name, number)
	}
	if !recordState.MatchString(d.Text) {
		t.Errorf("%s has no line with its date and state", d.Name)
	}
	for _, want := range []string{"## Context", "## Decision", "## Consequences"} {
		if !strings.Contains(d.Text, want+"\n") {
			t.Errorf("%s has no section %q", d.Name, want)
		}
	}
}
