package main

import (
	"crypto/rand"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/status"
)

// newPalette returns what colours words for a terminal. It leaves them plain if the output is not a terminal, or if
// NO_COLOR is set.
func newPalette(w io.Writer) explain.Palette {
	renderer := lipgloss.NewRenderer(unwrapWriter(w))
	in := func(style lipgloss.Style) func(string) string {
		return func(s string) string { return markTrusted(style.Render(escapeControls(s))) }
	}
	coloured := func(code string) func(string) string { return in(renderer.NewStyle().Foreground(lipgloss.Color(code))) }
	return explain.Palette{
		Good: coloured("2"), Warn: coloured("3"), Bad: coloured("1"),
		Dim: in(renderer.NewStyle().Faint(true)), Bold: in(renderer.NewStyle().Bold(true)),
	}
}

// escape is the character that begins a terminal escape sequence.
const escape = "\x1b"

// trustedMark follows each escape character that the command itself prints. It is random, so that
// text from a package, a file or a cluster cannot contain it.
var trustedMark = rand.Text()

// markTrusted marks the escape characters of a text, so that escapeControls keeps them.
func markTrusted(s string) string { return strings.ReplaceAll(s, escape, escape+trustedMark) }

// gone is printed instead of the phase of a resource that does not exist any more.
const gone = "gone"

// stateWord colours the state of a component or the phase of a resource.
func stateWord(palette explain.Palette, word string) string {
	switch word {
	case string(status.Verified), string(status.PhaseReady):
		return palette.Good(word)
	case string(status.Failed):
		return palette.Bad(word)
	case string(status.Excluded), gone:
		return palette.Dim(word)
	}
	return palette.Warn(word)
}
