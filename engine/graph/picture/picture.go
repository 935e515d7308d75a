// Package picture draws graphs of boxes for documents and reviews: as SVG and PNG, which need no other
// program, and as DOT and Mermaid, for those who have one.
//
//	p := picture.Picture{Nodes: ..., Edges: ...}
//	svg, err := p.SVG()
//
// SVG and PNG are one drawing on two canvases. The same picture is always drawn the same. Text may be
// anything: it is escaped, on one line and not longer than maxText.
package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"operetta.dev/engine/graph/layout"
)

// A Picture is a graph to be drawn. What a node needs is above it.
type Picture struct {
	// Title is what the picture shows.
	Title string
	Nodes []Node
	Edges []Edge
}

// A Node is a box.
type Node struct {
	// Title is its first line, and State how it is, in a word or two.
	Title, State string
	Tone         Tone
	// Lines are below that.
	Lines []Line
}

// A Line is a line of a box.
type Line struct {
	Text string
	Tone Tone
}

// An Edge leads from a node to one that needs it, by their places in the list.
type Edge struct {
	From, To int
	Kind     Kind
}

// Kind is why a node needs another one.
type Kind int

// The kinds of edges.
const (
	// Declared is one that the author has written.
	Declared Kind = iota
	// Derived follows from a reference.
	Derived
	// OrderOnly waits until the other is applied, and not until it is healthy.
	OrderOnly
)

// kinds say how edges are drawn.
var kinds = [...]struct {
	// name is for programs, and text for the legend.
	name, text string
	// dash and gap are those of the line, and dot and arrow how the languages of other programs write it.
	dash, gap  float64
	dot, arrow string
}{
	Declared:  {"Declared", "declared", 0, 0, "", "-->"},
	Derived:   {"Derived", "derived from a reference", 7, 4, " [style=dashed]", "-.->"},
	OrderOnly: {"OrderOnly", "order only", 1.8, 4, " [style=dotted]", "-.->|order only|"},
}

// Tone is how something is. Each has a colour and a sign.
type Tone int

// The tones.
const (
	// Plain says nothing, and has no sign.
	Plain Tone = iota
	Good
	Waiting
	Bad
	// Absent is what should not exist.
	Absent
)

// tones say how tones are drawn.
var tones = [...]struct {
	// name is for programs, class is that of a box in Mermaid, and mark the sign in a text.
	name, class, mark string
	// strong and light are the colours. They differ in brightness, too.
	strong, light colour
}{
	Plain:   {strong: colour{0x47, 0x55, 0x69}, light: paper},
	Good:    {"Good", ":::good", "✓ ", colour{0x0b, 0x6b, 0x4f}, colour{0xe4, 0xf4, 0xee}},
	Waiting: {"Waiting", ":::waiting", "… ", colour{0x95, 0x5f, 0x00}, colour{0xff, 0xf3, 0xd3}},
	Bad:     {"Bad", ":::bad", "✗ ", colour{0xb0, 0x1f, 0x1f}, colour{0xfd, 0xe5, 0xe3}},
	Absent:  {"Absent", ":::absent", "- ", colour{0x8a, 0x91, 0x9b}, colour{0xf5, 0xf6, 0xf8}},
}

// maxText bounds the characters of a line of a box, maxLines its lines, and maxTitle the title of a picture.
const (
	maxText  = 60
	maxLines = 12
	maxTitle = 200
)

// boxLine returns a text as a line that fits into a box.
func boxLine(text string) string { return shortened(text, maxText) }

// title returns the title of a picture as a line.
func (p Picture) title() string { return shortened(p.Title, maxTitle) }

// shortened returns a text on one line, with a limited number of characters.
func shortened(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		if !unicode.IsGraphic(r) || r == unicode.ReplacementChar {
			return '\uFFFD'
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// lines returns the lines of a box. Of too many, the last one says how many are left out.
func (n Node) lines() []Line {
	out := slices.Clone(n.Lines)
	if len(out) > maxLines {
		out = append(out[:maxLines-1], Line{Text: fmt.Sprintf("and %d more", len(n.Lines)-maxLines+1)})
	}
	for i := range out {
		out[i].Text = boxLine(out[i].Text)
	}
	return out
}

// The sizes of a drawing, in pixels.
const (
	titleSize = 15
	textSize  = 12.5
	lineStep  = 18
	padding   = 12
	margin    = 24
	signWidth = 18
	minWidth  = 96
	legendRow = 34
)

// size returns the size of a box.
func (n Node) size() layout.Node {
	width := textWidth(boxLine(n.Title), titleSize, true)
	if n.State != "" {
		width += 18 + signWidth + textWidth(boxLine(n.State), textSize, false)
	}
	lines := n.lines()
	for _, l := range lines {
		width = max(width, lineWidth(l))
	}
	height := float64(2*padding + titleSize)
	if len(lines) > 0 {
		height += 10 + float64(len(lines))*lineStep
	}
	return layout.Node{Width: max(minWidth, width+2*padding), Height: height}
}

func lineWidth(l Line) float64 {
	width := textWidth(l.Text, textSize, false)
	if l.Tone != Plain {
		width += signWidth
	}
	return width
}

// A canvas is what a picture is drawn on.
type canvas interface {
	// box draws a rectangle with round corners.
	box(x, y, width, height float64, look look)
	// curve draws a curve that leaves and arrives vertically.
	curve(from, to layout.Point, line stroke)
	// line draws a line through points.
	line(points []layout.Point, line stroke)
	// area fills an area.
	area(points []layout.Point, colour colour)
	// text writes a text with its left end on a base line.
	text(x, y float64, text string, size float64, bold bool, colour colour)
}

// A look is how a box looks.
type look struct {
	fill   colour
	border stroke
}

// A stroke is how a line looks.
type stroke struct {
	colour colour
	width  float64
	// dash and gap are the lengths of a broken line; 0 is a whole one.
	dash, gap float64
}

type colour struct{ r, g, b uint8 }

var (
	ink   = colour{0x1f, 0x29, 0x37}
	soft  = colour{0x5b, 0x65, 0x73}
	paper = colour{0xff, 0xff, 0xff}
)

// line returns how an edge of a kind is drawn.
func (k Kind) line() stroke {
	return stroke{colour: soft, width: 1.6, dash: kinds[k].dash, gap: kinds[k].gap}
}

// A drawing is a picture whose boxes have places.
type drawing struct {
	Picture

	sizes         []layout.Node
	layout        layout.Layout
	width, height float64
	// top is where the boxes begin.
	top float64
}

func (p Picture) drawing() drawing {
	d := drawing{Picture: p, top: margin}
	edges := make([]layout.Edge, len(p.Edges))
	for _, n := range p.Nodes {
		d.sizes = append(d.sizes, n.size())
	}
	for i, e := range p.Edges {
		edges[i] = layout.Edge{From: e.From, To: e.To, Class: int(e.Kind)}
	}
	d.layout = layout.Place(d.sizes, edges)
	if p.Title != "" {
		d.top += titleSize + 18
	}
	d.width = max(d.layout.Width, textWidth(p.title(), titleSize, true), d.legendWidth()) + 2*margin
	d.height = d.top + d.layout.Height + margin
	if len(p.Edges) > 0 {
		d.height += legendRow
	}
	return d
}

// draw draws a picture.
func (d drawing) draw(on canvas) {
	if d.Title != "" {
		on.text(margin, margin+titleSize-2, d.title(), titleSize, true, ink)
	}
	left := (d.width - d.layout.Width) / 2
	drawn := map[segment]bool{}
	for i, points := range d.layout.Edges {
		d.edge(on, points, d.Edges[i].Kind, left, drawn)
	}
	for i, n := range d.Nodes {
		n.draw(on, d.layout.Nodes[i].X+left, d.layout.Nodes[i].Y+d.top, d.sizes[i])
	}
	if len(d.Edges) > 0 {
		d.legend(on)
	}
}

// A segment is a part of an edge, which edges of one kind may share.
type segment struct {
	from, to layout.Point
	kind     Kind
}

// edge draws an edge: straight beside boxes, and curved between the layers. It leaves out what was drawn.
func (d drawing) edge(on canvas, points []layout.Point, kind Kind, left float64, drawn map[segment]bool) {
	const arrow = 8
	line := kind.line()
	for i := 1; i < len(points); i++ {
		from := layout.Point{X: points[i-1].X + left, Y: points[i-1].Y + d.top}
		to := layout.Point{X: points[i].X + left, Y: points[i].Y + d.top}
		part := segment{from, to, kind}
		if drawn[part] {
			continue
		}
		drawn[part] = true
		if i == len(points)-1 {
			on.area([]layout.Point{{X: to.X, Y: to.Y}, {X: to.X - arrow/2, Y: to.Y - arrow}, {X: to.X + arrow/2, Y: to.Y - arrow}}, line.colour)
			to.Y -= arrow - 1
		}
		if from.X == to.X {
			on.line([]layout.Point{from, to}, line)
		} else {
			on.curve(from, to, line)
		}
	}
}

// draw draws a box.
func (n Node) draw(on canvas, x, y float64, size layout.Node) {
	tone := tones[n.Tone]
	border := stroke{colour: tone.strong, width: 1.4}
	if n.Tone == Absent {
		border.dash, border.gap = 5, 4
	}
	on.box(x, y, size.Width, size.Height, look{tone.light, border})
	base := y + padding + titleSize - 3
	on.text(x+padding, base, boxLine(n.Title), titleSize, true, ink)
	if n.State != "" {
		at := x + size.Width - padding - textWidth(boxLine(n.State), textSize, false)
		sign(on, at-signWidth, base, n.Tone)
		on.text(at, base, boxLine(n.State), textSize, false, tone.strong)
	}
	for i, l := range n.lines() {
		at, base := x+padding, base+12+float64(i+1)*lineStep-4
		if l.Tone != Plain {
			sign(on, at, base, l.Tone)
			at += signWidth
		}
		on.text(at, base, l.Text, textSize, false, cmp.Or(map[bool]colour{true: soft}[l.Tone == Absent], ink))
	}
}

// sign draws the sign of a tone: a check mark, three dots, a cross or a dash.
func sign(on canvas, x, base float64, t Tone) {
	strong := tones[t].strong
	line := stroke{colour: strong, width: 2}
	at := func(dx, dy float64) layout.Point { return layout.Point{X: x + dx, Y: base - dy} }
	switch t {
	case Good:
		on.line([]layout.Point{at(1, 4.5), at(4.5, 1), at(11, 9)}, line)
	case Waiting:
		for _, dx := range []float64{0.5, 5, 9.5} {
			on.area([]layout.Point{at(dx, 5.5), at(dx+2.5, 5.5), at(dx+2.5, 3), at(dx, 3)}, strong)
		}
	case Bad:
		on.line([]layout.Point{at(2, 9), at(10, 1)}, line)
		on.line([]layout.Point{at(2, 1), at(10, 9)}, line)
	case Absent:
		on.line([]layout.Point{at(1.5, 4.5), at(10.5, 4.5)}, line)
	case Plain:
	}
}

// legendSample is the length of a sample of a line.
const legendSample = 34

func (d drawing) legendWidth() float64 {
	width := 0.0
	for _, k := range d.kinds() {
		width += legendSample + 8 + textWidth(kinds[k].text, textSize, false) + 24
	}
	return width
}

// kinds returns the kinds of the edges of a picture.
func (p Picture) kinds() []Kind {
	var out []Kind
	for _, e := range p.Edges {
		if !slices.Contains(out, e.Kind) {
			out = append(out, e.Kind)
		}
	}
	slices.Sort(out)
	return out
}

// legend says what the lines mean.
func (d drawing) legend(on canvas) {
	x, base := float64(margin), d.height-margin
	for _, k := range d.kinds() {
		on.line([]layout.Point{{X: x, Y: base - 4}, {X: x + legendSample, Y: base - 4}}, k.line())
		x += legendSample + 8
		on.text(x, base, kinds[k].text, textSize, false, soft)
		x += textWidth(kinds[k].text, textSize, false) + 24
	}
}
