package main

import (
	"strings"
	"testing"
)

func TestAPictureIsCutOnlyToAHeightThatATerminalHas(t *testing.T) {
	t.Parallel()
	const picture = "1\n2\n3\n4\n5\n"
	for name, row := range map[string]struct {
		reason string
		height uint16
		want   string
	}{
		"none":     {"a container has a terminal without a size until somebody sets it", 0, "1\n2\n3\n4\n5\n"},
		"enough":   {"all of it can be seen", 24, "1\n2\n3\n4\n5\n"},
		"too low":  {"the beginning stays in sight", 4, "1\n2\n... and 3 more lines\n"},
		"one line": {"there is room for nothing else", 1, "... and 5 more lines\n"},
	} {
		_, tty := openTerminal(t)
		defer tty.Close()
		setHeight(t, tty, row.height)
		got := onScreen(tty, picture)
		if got = got[strings.LastIndex(got, "[2J")+len("[2J"):]; got != row.want {
			t.Errorf("%s: %s: got %q, want %q", name, row.reason, got, row.want)
		}
	}
}
