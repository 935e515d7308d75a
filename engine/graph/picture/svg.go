package picture

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"operetta.dev/engine/graph/layout"
)

// SVG returns the picture as an SVG document, which refers to nothing outside itself.
func (p Picture) SVG() []byte {
	d := p.drawing()
	c := &svg{}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" font-family="Go, Helvetica, Arial, sans-serif">`+"\n",
		number(d.width), number(d.height), number(d.width), number(d.height))
	fmt.Fprintf(&c.b, "<title>%s</title>\n", escaped(p.title()))
	fmt.Fprintf(&c.b, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", paper)
	d.draw(c)
	c.b.WriteString("</svg>\n")
	return c.b.Bytes()
}

// svg is a canvas that writes SVG.
type svg struct{ b bytes.Buffer }

// number returns a length with one decimal.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

func (c colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c.r, c.g, c.b) }

// escaped returns a text for a document: of what XML cannot hold, there is a replacement.
func escaped(text string) string {
	var b bytes.Buffer
	if xml.EscapeText(&b, []byte(text)) != nil {
		return ""
	}
	return b.String()
}

// attributes returns the attributes of a line.
func (s stroke) attributes() string {
	out := fmt.Sprintf(`stroke="%s" stroke-width="%s"`, s.colour, number(s.width))
	if s.dash > 0 {
		out += fmt.Sprintf(` stroke-dasharray="%s %s"`, number(s.dash), number(s.gap))
	}
	return out
}

func (c *svg) box(x, y, width, height float64, l look) {
	fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s" rx="%d" fill="%s" %s/>`+"\n",
		number(x), number(y), number(width), number(height), corner, l.fill, l.border.attributes())
}

func (c *svg) curve(from, to layout.Point, line stroke) {
	middle := number((from.Y + to.Y) / 2)
	fmt.Fprintf(&c.b, `<path d="M%s %sC%s %s %s %s %s %s" fill="none" %s/>`+"\n",
		number(from.X), number(from.Y), number(from.X), middle, number(to.X), middle, number(to.X), number(to.Y), line.attributes())
}

func (c *svg) line(points []layout.Point, line stroke) {
	fmt.Fprintf(&c.b, `<polyline points="%s" fill="none" %s/>`+"\n", coordinates(points), line.attributes())
}

func (c *svg) area(points []layout.Point, fill colour) {
	fmt.Fprintf(&c.b, `<polygon points="%s" fill="%s"/>`+"\n", coordinates(points), fill)
}

func coordinates(points []layout.Point) string {
	out := make([]string, len(points))
	for i, p := range points {
		out[i] = number(p.X) + "," + number(p.Y)
	}
	return strings.Join(out, " ")
}

func (c *svg) text(x, y float64, text string, size float64, bold bool, fill colour) {
	weight := ""
	if bold {
		weight = ` font-weight="bold"`
	}
	// The length keeps a text within its box where there is another font.
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" font-size="%s"%s fill="%s" textLength="%s" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n",
		number(x), number(y), number(size), weight, fill, number(textWidth(text, size, bold)), escaped(text))
}
