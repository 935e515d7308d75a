package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"operetta.dev/test/docs/internal/commands"
)

// TestEveryCommandIsPlayedOrHasAReason holds the documents against what package play runs.
func TestEveryCommandIsPlayedOrHasAReason(t *testing.T) {
	shown := map[string]bool{}
	for _, d := range documents(t) {
		if strings.HasPrefix(d.Name, "docs/design/") {
			continue // a record says what was true when it was written
		}
		all, err := commands.In(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			shown[c.Line] = true
			checkCommand(t, c)
		}
	}
	for _, line := range commands.Played {
		if !shown[line] {
			t.Errorf("%s is played, and no document shows it", line)
		}
	}
	for line, reason := range commands.Left {
		if !shown[line] {
			t.Errorf("%s is not played (%s), and no document shows it", line, reason)
		}
	}
	if len(shown) < 30 {
		t.Errorf("only %d commands were found in the documents", len(shown))
	}
}

func checkCommand(t *testing.T, c commands.Command) {
	t.Helper()
	if _, left := commands.Left[c.Line]; left || slices.Contains(commands.Played, c.Line) {
		return
	}
	if sub, flags, ok := c.Name(); ok {
		checkName(t, c, sub, flags)
		return
	}
	if target, ok := c.Target(); ok {
		makefile := read(t, "Makefile").Text
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `( [a-z/]+)*:`).MatchString(makefile) {
			t.Errorf("%s: the Makefile has no target %s", c.At, target)
		}
		return
	}
	t.Errorf("%s: nobody knows whether this works: %s\nadd it to Played or Left of test/docs/internal/commands", c.At, c.Line)
}

// checkName checks that a command that is only named exists, with its flags.
func checkName(t *testing.T, c commands.Command, sub string, flags []string) {
	t.Helper()
	for _, s := range read(t, "docs/cli.md").Sections() {
		if s.Title != "operetta "+sub {
			continue
		}
		for _, f := range flags {
			if !regexp.MustCompile(regexp.QuoteMeta(f) + `\b`).MatchString(s.Text) {
				t.Errorf("%s: operetta %s has no flag %s", c.At, sub, f)
			}
		}
		return
	}
	t.Errorf("%s: there is no command operetta %s", c.At, sub)
}
