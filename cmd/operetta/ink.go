package main

import (
	"io"

	"github.com/charmbracelet/lipgloss"
)

// ink colours words for a terminal. Anything else, and a terminal whose user has set
// NO_COLOR, gets them plain.
type ink struct{ renderer *lipgloss.Renderer }

func newInk(w io.Writer) ink { return ink{lipgloss.NewRenderer(w)} }

func (i ink) good(s string) string { return i.colour("2", s) }
func (i ink) warn(s string) string { return i.colour("3", s) }
func (i ink) bad(s string) string  { return i.colour("1", s) }
func (i ink) dim(s string) string  { return i.renderer.NewStyle().Faint(true).Render(s) }

func (i ink) colour(code, s string) string {
	return i.renderer.NewStyle().Foreground(lipgloss.Color(code)).Render(s)
}
