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

// gone is printed instead of the phase of a resource that does not exist any more.
const gone = "gone"

// word colours the state of a component or the phase of a resource.
func (i ink) word(word string) string {
	switch word {
	case string(status.Verified), string(status.PhaseReady):
		return i.good(word)
	case string(status.Failed):
		return i.bad(word)
	case string(status.Excluded), gone:
		return i.dim(word)
	}
	return i.warn(word)
}
