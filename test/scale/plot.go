package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"os"
	"slices"
	"strconv"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// The sizes of the picture, in pixels.
const (
	panelWidth, panelHeight = 480, 300
	margin                  = 28
	headHeight              = 76
	axisHeight              = 26
	barWidth, barGap        = 34, 12
	axisWidth               = 34
	gridLines               = 4
)

// A panel compares the controllers by some metrics of one unit.
type panel struct {
	title, unit string
	metrics     []bar
}

// A bar is a metric, as it is named below its bars.
type bar struct{ id, label string }

var panels = []panel{
	{"CPU per resource", "ms", []bar{{"create_cpu", "creation"}, {"edit_cpu", "package edit"}, {"restart_cpu", "restart"}}},
	{"CPU per unchanged reconcile", "ms", []bar{{"unchanged_cpu", "reconcile"}}},
	{"Memory of the process and its workers", "MiB", []bar{{"idle_memory", "no resources"}, {"create_memory", "creation, peak"}}},
	{"Time until all are Ready", "s", []bar{{"create_wall", "creation"}, {"edit_wall", "package edit"}}},
}

var (
	ink     = color.RGBA{0x22, 0x22, 0x22, 0xff}
	faint   = color.RGBA{0xd8, 0xd8, 0xd8, 0xff}
	palette = []color.RGBA{{0x2f, 0x6d, 0xb5, 0xff}, {0x9d, 0xb8, 0xd9, 0xff}, {0xe0, 0x8e, 0x3c, 0xff}}
)

// A canvas is a picture that is drawn.
type canvas struct {
	*image.RGBA

	plain, bold, small font.Face
}

// newCanvas returns a white picture.
func newCanvas(width, height int) (*canvas, error) {
	c := &canvas{RGBA: image.NewRGBA(image.Rect(0, 0, width, height))}
	draw.Draw(c, c.Bounds(), image.White, image.Point{}, draw.Src)
	for _, f := range []struct {
		face *font.Face
		ttf  []byte
		size float64
	}{{&c.plain, goregular.TTF, 14}, {&c.bold, gobold.TTF, 16}, {&c.small, goregular.TTF, 12}} {
		parsed, err := opentype.Parse(f.ttf)
		if err != nil {
			return nil, err
		}
		if *f.face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: f.size, DPI: 72, Hinting: font.HintingFull}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// write writes a text whose base line begins at a point, or is centred at it.
func (c *canvas) write(face font.Face, x, y int, centred bool, text string) {
	d := font.Drawer{Dst: c, Src: image.NewUniform(ink), Face: face, Dot: fixed.P(x, y)}
	if centred {
		d.Dot.X -= d.MeasureString(text) / 2
	}
	d.DrawString(text)
}

// fill fills a rectangle.
func (c *canvas) fill(x0, y0, x1, y1 int, with color.Color) {
	draw.Draw(c, image.Rect(x0, y0, x1, y1), image.NewUniform(with), image.Point{}, draw.Src)
}

// plot draws the results of a run, and writes them to a PNG file.
func (r *results) plot(name string) error {
	shown := slices.DeleteFunc(slices.Clone(panels), func(p panel) bool { return !r.has(p) })
	columns := min(2, max(1, len(shown)))
	lines := (len(shown) + columns - 1) / columns
	c, err := newCanvas(columns*panelWidth+margin, headHeight+lines*panelHeight)
	if err != nil {
		return err
	}
	c.write(c.bold, margin, 30, false, fmt.Sprintf("%d resources of 8 objects, on a complete control plane", r.n))
	c.legend(r.controllers())
	for i, p := range shown {
		c.panel(r, p, i%columns*panelWidth+margin, headHeight+i/columns*panelHeight)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := png.Encode(f, c); err != nil {
		return err
	}
	return f.Close()
}

// has reports whether the run has measured something of a panel.
func (r *results) has(p panel) bool {
	return slices.ContainsFunc(r.all, func(m measurement) bool {
		return slices.ContainsFunc(p.metrics, func(b bar) bool { return b.id == m.Metric })
	})
}

// legend says which colour is which controller.
func (c *canvas) legend(controllers []string) {
	x := margin
	for i, name := range controllers {
		c.fill(x, 46, x+14, 60, palette[i%len(palette)])
		c.write(c.plain, x+20, 58, false, name)
		x += 40 + font.MeasureString(c.plain, name).Ceil()
	}
}

// panel draws one panel into the rectangle that begins at a point.
func (c *canvas) panel(r *results, p panel, x, y int) {
	controllers := r.controllers()
	c.write(c.bold, x, y+16, false, p.title+", "+p.unit)
	top, bottom := y+48, y+panelHeight-axisHeight-24
	highest := 0.0
	for _, b := range p.metrics {
		for _, name := range controllers {
			v, _ := r.value(name, b.id)
			highest = max(highest, v)
		}
	}
	step := niceStep(highest / gridLines)
	height := func(v float64) int { return bottom - int(float64(bottom-top)*v/max(highest, step)) }
	right := x + panelWidth - margin
	for i := 0.0; i*step <= max(highest, step); i++ {
		v, label := i*step, gridLabel(i, step)
		c.fill(x+axisWidth, height(v), right, height(v)+1, faint)
		c.write(c.small, x+axisWidth-6-font.MeasureString(c.small, label).Ceil(), height(v)+4, false, label)
	}
	at := x + axisWidth + barGap
	for _, b := range p.metrics {
		width := len(controllers) * barWidth
		for i, name := range controllers {
			v, ok := r.value(name, b.id)
			if !ok {
				continue
			}
			left := at + i*barWidth
			c.fill(left+2, height(v), left+barWidth-2, bottom, palette[i%len(palette)])
			c.write(c.small, left+barWidth/2, height(v)-5, true, number(v))
		}
		c.write(c.plain, at+width/2, bottom+18, true, b.label)
		at += width + 2*barGap
	}
	c.fill(x+axisWidth, bottom, right, bottom+1, ink)
}

// gridLabel returns the value of a line of the grid, with as many decimal places as the distance to the next one has:
// three times 0.1 is 0.30000000000000004.
func gridLabel(line, step float64) string {
	return strconv.FormatFloat(line*step, 'f', max(0, -int(math.Floor(math.Log10(step)))), 64)
}

// niceStep returns the next number of the form 1, 2 or 5 times a power of ten.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(v, 1e-3))))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= v {
			return factor * power
		}
	}
	return 10 * power
}
