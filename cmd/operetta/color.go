package main

import (
	"crypto/rand"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"operetta.dev/engine/status"
)

// ink colours words for a terminal. It leaves them plain if the output is not a terminal, or if
// NO_COLOR is set.
type ink struct{ renderer *lipgloss.Renderer }

func newInk(w io.Writer) ink { return ink{lipgloss.NewRenderer(unwrapWriter(w))} }

func (i ink) good(s string) string { return i.colour("2", s) }
func (i ink) warn(s string) string { return i.colour("3", s) }
func (i ink) bad(s string) string  { return i.colour("1", s) }
func (i ink) dim(s string) string {
	return markTrusted(i.renderer.NewStyle().Faint(true).Render(escapeControls(s)))
}

func (i ink) colour(code, s string) string {
	return markTrusted(i.renderer.NewStyle().Foreground(lipgloss.Color(code)).Render(escapeControls(s)))
}

// escape is the character that begins a terminal escape sequence.
const escape = "\x1b"

// trustedMark follows each escape character that the command itself prints. It is random, so that
// text from a package, a file or a cluster cannot contain it.
var trustedMark = rand.Text()

// markTrusted marks the escape characters of a text, so that escapeControls keeps them.
func markTrusted(s string) string { return strings.ReplaceAll(s, escape, escape+trustedMark) }

// state colours the state of a component.
func (i ink) state(state string) string {
	switch status.State(state) {
	case status.Verified:
		return i.good(state)
	case status.Failed:
		return i.bad(state)
	case status.Excluded:
		return i.dim(state)
	case status.Applied, status.Waiting, status.Retrying, status.Held, status.Deleting:
	}
	return i.warn(state)
}
