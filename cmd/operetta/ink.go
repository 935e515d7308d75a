package main

import (
	"crypto/rand"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"operetta.dev/engine/status"
)

// ink colours words for a terminal. Anything else, and a terminal whose user has set
// NO_COLOR, gets them plain.
type ink struct{ renderer *lipgloss.Renderer }

func newInk(w io.Writer) ink { return ink{lipgloss.NewRenderer(behind(w))} }

func (i ink) good(s string) string { return i.colour("2", s) }
func (i ink) warn(s string) string { return i.colour("3", s) }
func (i ink) bad(s string) string  { return i.colour("1", s) }
func (i ink) dim(s string) string {
	return sealed(i.renderer.NewStyle().Faint(true).Render(visible(s)))
}

func (i ink) colour(code, s string) string {
	return sealed(i.renderer.NewStyle().Foreground(lipgloss.Color(code)).Render(visible(s)))
}

// escape begins what a terminal takes for a command.
const escape = "\x1b"

// seal stands behind an escape that is meant: what is printed comes from elsewhere, and nobody
// there knows it.
var seal = rand.Text()

// sealed marks the escapes of a text as meant.
func sealed(s string) string { return strings.ReplaceAll(s, escape, escape+seal) }

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
