package dashboard

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// The sizes of a picture, in pixels.
const (
	column, row   = 40, 30
	gap           = 4
	edge          = 10
	titleHeight   = 24
	axisWidth     = 58
	axisHeight    = 18
	legendLine    = 15
	maxLegend     = 8
	tableLine     = 20
	letter        = 6.1 // the width of a letter of a small text, about
	smallSize     = 11
	statSize      = 30
	gridColumns   = 24
	columnPadding = 14
)

const (
	ink   = "#1f2430"
	faint = "#6b7280"
	line  = "#e3e6ea"
	paper = "#ffffff"
)

// namedColours are those of Grafana that a panel may give to a series.
var namedColours = map[string]string{
	"blue": "#2f6db5", "light-blue": "#8ab8ff", "green": "#3f9c61", "red": "#c4314b", "dark-red": "#7d1128", "orange": "#e08e3c",
	"yellow": "#d9b400", "purple": "#7b61b0", "gray": "#9aa0a8",
}

// colours are those of the series to which the panel gives none, in their order.
var colours = []string{"#2f6db5", "#e08e3c", "#3f9c61", "#b5475d", "#7b61b0", "#8a6d3b", "#2a9aa8", "#5d6773"}

// A canvas is an SVG that is drawn, of results between two times.
type canvas struct {
	bytes.Buffer

	from, to time.Time
}

// Draw draws a dashboard with what each of its queries came to, by the expressions of its targets. What is drawn is the same for the same results.
func Draw(d Dashboard, results map[string][]Series, from, to time.Time) []byte {
	height := 0
	for _, p := range d.Panels {
		height = max(height, (p.GridPos.Y+p.GridPos.H)*row)
	}
	c := &canvas{from: from, to: to}
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="Helvetica, Arial, sans-serif">`+"\n", gridColumns*column+gap, height+gap)
	fmt.Fprintf(c, `<rect width="100%%" height="100%%" fill="#f4f5f7"/>`+"\n")
	for _, p := range d.Panels {
		c.panel(p, results)
	}
	c.WriteString("</svg>\n")
	return c.Bytes()
}

// A box is where something is drawn.
type box struct{ x, y, w, h float64 }

func (c *canvas) panel(p Panel, results map[string][]Series) {
	b := box{float64(p.GridPos.X*column + gap), float64(p.GridPos.Y*row + gap), float64(p.GridPos.W*column - gap), float64(p.GridPos.H*row - gap)}
	fmt.Fprintf(c, "<g><title>%s</title><desc>%s</desc>\n", escaped(p.Title), escaped(strings.Join(p.shown().Queries, "\n")))
	fmt.Fprintf(c, `<rect x="%s" y="%s" width="%s" height="%s" rx="3" fill="%s" stroke="%s"/>`+"\n", n(b.x), n(b.y), n(b.w), n(b.h), paper, line)
	c.text(b.x+edge, b.y+17, 13, ink, true, p.Title)
	inner := box{b.x + edge, b.y + titleHeight, b.w - 2*edge, b.h - titleHeight - edge/2}
	all := p.named(results)
	switch p.Type {
	case "stat":
		c.stat(inner, all, p.FieldConfig.Defaults.Unit)
	case "table":
		c.table(inner, all, p.FieldConfig.Defaults.Unit)
	default:
		c.lines(inner, all, p.FieldConfig.Defaults.Unit)
	}
	c.WriteString("</g>\n")
}

// A named series is one with the name that the panel gives to it.
type named struct {
	Series

	name string
	// colour is that which the panel gives to it, or "".
	colour string
}

// colourOf returns the colour of a series.
func colourOf(all []named, i int) string {
	return cmp.Or(namedColours[all[i].colour], colours[i%len(colours)])
}

// named returns the series of the queries of a panel, in the order of the queries and of their names.
func (p Panel) named(results map[string][]Series) []named {
	var out []named
	for _, t := range p.Targets {
		var some []named
		for _, s := range results[t.Expr] {
			name := t.LegendFormat
			for label, value := range s.Labels {
				name = strings.ReplaceAll(name, "{{"+label+"}}", value)
			}
			some = append(some, named{s, name, p.colour(name)})
		}
		slices.SortFunc(some, func(a, b named) int {
			return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)))
		})
		out = append(out, some...)
	}
	return out
}

// last returns the last value of a series.
func (s Series) last() float64 {
	if len(s.Points) == 0 {
		return math.NaN()
	}
	return s.Points[len(s.Points)-1].Value
}

func (c *canvas) stat(b box, all []named, unit string) {
	value := "–"
	if len(all) > 0 {
		value = inUnit(all[0].last(), unit)
	}
	size := min(statSize, b.w/(0.6*float64(len([]rune(value)))))
	fmt.Fprintf(c, `<text x="%s" y="%s" font-size="%s" text-anchor="middle" fill="%s">%s</text>`+"\n", n(b.x+b.w/2), n(b.y+b.h/2+size/3), n(size), colours[0], escaped(value))
}

// table draws a row for each series: its labels, and its value, the greatest first.
func (c *canvas) table(b box, all []named, unit string) {
	slices.SortStableFunc(all, func(x, y named) int { return cmp.Compare(y.last(), x.last()) })
	names := map[string]bool{}
	for _, s := range all {
		for name := range s.Labels {
			names[name] = true
		}
	}
	columns := append(slices.Sorted(maps.Keys(names)), "Value")
	rows := [][]string{columns}
	for _, s := range all {
		var cells []string
		for _, name := range columns[:len(columns)-1] {
			cells = append(cells, s.Labels[name])
		}
		rows = append(rows, append(cells, inUnit(s.last(), unit)))
	}
	rows = rows[:min(len(rows), int(b.h)/tableLine)]
	x := b.x
	for i := range columns {
		widest := 0
		for at, cells := range rows {
			colour := ink
			if at == 0 {
				colour = faint
			}
			c.text(x, b.y+float64(at*tableLine)+14, smallSize, colour, false, cells[i])
			widest = max(widest, len([]rune(cells[i])))
		}
		x += float64(widest)*letter + columnPadding
	}
	for at := range rows {
		c.rule(b.x, b.y+float64((at+1)*tableLine)-1, b.x+b.w)
	}
}

// lines draws the series over the time, and their names below them.
func (c *canvas) lines(b box, all []named, unit string) {
	all = all[:min(len(all), maxLegend)]
	plot := box{b.x + axisWidth, b.y + 6, b.w - axisWidth, b.h - c.legend(b, all) - axisHeight - 10}
	highest := 0.0
	for _, s := range all {
		for _, p := range s.Points {
			if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
				highest = max(highest, p.Value)
			}
		}
	}
	if highest == 0 {
		highest = 1
	}
	distance := step(highest)
	top := math.Ceil(highest/distance-1e-9) * distance
	at := func(v float64) float64 { return plot.y + plot.h*(1-v/top) }
	for v := 0.0; v <= top+distance/2; v += distance {
		c.rule(plot.x, at(v), plot.x+plot.w)
		label := inUnit(v, unit)
		c.text(plot.x-6-float64(len([]rune(label)))*letter, at(v)+4, smallSize, faint, false, label)
	}
	c.times(plot)
	for i, s := range all {
		c.line(plot, s.Series, at, colourOf(all, i))
	}
}

// times writes minutes below a plot.
func (c *canvas) times(plot box) {
	const every = 30 * time.Second
	for t := time.Duration(0); t <= c.to.Sub(c.from); t += every {
		label := fmt.Sprintf("%d:%02d", int(t.Minutes()), int(t.Seconds())%60)
		x := c.across(plot, c.from.Add(t))
		c.text(min(x-float64(len(label))*letter/2, plot.x+plot.w-float64(len(label))*letter), plot.y+plot.h+axisHeight-3, smallSize, faint, false, label)
	}
}

// across returns where a time is.
func (c *canvas) across(plot box, at time.Time) float64 {
	return plot.x + plot.w*float64(at.Sub(c.from))/float64(max(1, c.to.Sub(c.from)))
}

// line draws one series, with gaps where it has no value.
func (c *canvas) line(plot box, s Series, at func(float64) float64, colour string) {
	var points []string
	flush := func() {
		if len(points) > 0 {
			fmt.Fprintf(c, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.6" stroke-linejoin="round"/>`+"\n", strings.Join(points, " "), colour)
		}
		points = nil
	}
	for _, p := range s.Points {
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			flush()
			continue
		}
		points = append(points, n(c.across(plot, p.At))+","+n(at(p.Value)))
	}
	flush()
}

// legend writes the names of series at the end of a box, and returns its height.
func (c *canvas) legend(b box, all []named) float64 {
	var lines [][]int
	used := b.w + 1
	width := func(i int) float64 { return float64(len([]rune(c.fitting(b, all[i].name))))*letter + 30 }
	for i := range all {
		if used+width(i) > b.w {
			lines, used = append(lines, nil), 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], i)
		used += width(i)
	}
	y := b.y + b.h - float64(len(lines)*legendLine)
	for at, of := range lines {
		x := b.x
		for _, i := range of {
			fmt.Fprintf(c, `<rect x="%s" y="%s" width="12" height="4" fill="%s"/>`+"\n", n(x), n(y+float64(at*legendLine)+7), colourOf(all, i))
			c.text(x+16, y+float64(at*legendLine)+13, smallSize, ink, false, c.fitting(b, all[i].name))
			x += width(i)
		}
	}
	return float64(len(lines) * legendLine)
}

// fitting shortens a name to the width of a box.
func (c *canvas) fitting(b box, name string) string {
	most := int((b.w - 30) / letter)
	if letters := []rune(name); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return name
}

func (c *canvas) rule(x, y, to float64) {
	fmt.Fprintf(c, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s"/>`+"\n", n(x), n(y), n(to), n(y), line)
}

func (c *canvas) text(x, y, size float64, colour string, bold bool, text string) {
	weight := ""
	if bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(c, `<text x="%s" y="%s" font-size="%s" fill="%s"%s>%s</text>`+"\n", n(x), n(y), n(size), colour, weight, escaped(text))
}

// n writes a number of pixels.
func n(v float64) string { return fmt.Sprint(math.Round(v*10) / 10) }

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer does not fail
	return b.String()
}
