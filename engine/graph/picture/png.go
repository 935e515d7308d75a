package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
	"operetta.dev/engine/graph/layout"
)

const (
	// maxPixels bounds a PNG, and maxScale how many pixels there are for each of the drawing.
	maxPixels = 24 << 20
	maxScale  = 2
	// minScale is the scale at which texts can just be read.
	minScale = 0.5
	// corner is the radius of the corners of a box.
	corner = 6
)

// PNG returns the picture as a PNG. It errors if the picture is so large that its texts could not be read.
func (p Picture) PNG() ([]byte, error) {
	d := p.drawing()
	scale := min(maxScale, math.Sqrt(maxPixels/(d.width*d.height)))
	if scale < minScale {
		return nil, fmt.Errorf("a picture of %d boxes is too large for a PNG: take SVG", len(p.Nodes))
	}
	c := &bitmap{scale: scale, faces: map[faceKey]font.Face{}}
	c.to = image.NewRGBA(image.Rect(0, 0, int(math.Ceil(d.width*scale)), int(math.Ceil(d.height*scale))))
	draw.Draw(c.to, c.to.Bounds(), image.NewUniform(paper.opaque()), image.Point{}, draw.Src)
	d.draw(c)
	var out bytes.Buffer
	err := png.Encode(&out, c.to)
	return out.Bytes(), err
}

type faceKey struct {
	size float64
	bold bool
}

// bitmap is a canvas of pixels.
type bitmap struct {
	to    *image.RGBA
	scale float64
	faces map[faceKey]font.Face
}

func (c colour) opaque() color.RGBA { return color.RGBA{c.r, c.g, c.b, 0xff} }

// fill fills areas that have the same direction of rotation.
func (c *bitmap) fill(areas [][]layout.Point, with colour) {
	if len(areas) == 0 {
		return
	}
	low, high := layout.Point{X: math.Inf(1), Y: math.Inf(1)}, layout.Point{X: math.Inf(-1), Y: math.Inf(-1)}
	for _, area := range areas {
		for _, p := range area {
			low = layout.Point{X: min(low.X, p.X), Y: min(low.Y, p.Y)}
			high = layout.Point{X: max(high.X, p.X), Y: max(high.Y, p.Y)}
		}
	}
	// Only what is around the areas is painted.
	at := image.Rect(int(low.X*c.scale)-1, int(low.Y*c.scale)-1, int(high.X*c.scale)+2, int(high.Y*c.scale)+2).Intersect(c.to.Bounds())
	if at.Empty() {
		return
	}
	r := vector.NewRasterizer(at.Dx(), at.Dy())
	place := func(p layout.Point) (x, y float32) {
		return float32(p.X*c.scale - float64(at.Min.X)), float32(p.Y*c.scale - float64(at.Min.Y))
	}
	for _, area := range areas {
		r.MoveTo(place(area[0]))
		for _, p := range area[1:] {
			r.LineTo(place(p))
		}
		r.ClosePath()
	}
	r.Draw(c.to, at, image.NewUniform(with.opaque()), image.Point{})
}

func (c *bitmap) area(points []layout.Point, with colour) { c.fill([][]layout.Point{points}, with) }

func (c *bitmap) box(x, y, width, height float64, l look) {
	var outline []layout.Point
	const steps = 6
	for i, middle := range []layout.Point{{X: x + width - corner, Y: y + corner}, {X: x + width - corner, Y: y + height - corner}, {X: x + corner, Y: y + height - corner}, {X: x + corner, Y: y + corner}} {
		for s := 0; s <= steps; s++ {
			angle := (float64(i-1) + float64(s)/steps) * math.Pi / 2
			outline = append(outline, layout.Point{X: middle.X + corner*math.Cos(angle), Y: middle.Y + corner*math.Sin(angle)})
		}
	}
	c.area(outline, l.fill)
	c.line(append(outline, outline[0]), l.border)
}

func (c *bitmap) curve(from, to layout.Point, line stroke) {
	const steps = 24
	points := make([]layout.Point, 0, steps+1)
	middle := (from.Y + to.Y) / 2
	for i := range steps + 1 {
		t := float64(i) / steps
		a, b, e, f := (1-t)*(1-t)*(1-t), 3*t*(1-t)*(1-t), 3*t*t*(1-t), t*t*t
		points = append(points, layout.Point{X: (a+b)*from.X + (e+f)*to.X, Y: a*from.Y + (b+e)*middle + f*to.Y})
	}
	c.line(points, line)
}

func (c *bitmap) line(points []layout.Point, line stroke) {
	var areas [][]layout.Point
	left, on := line.dash, true // what is left of the present dash or gap
	for i := 1; i < len(points); i++ {
		from, to := points[i-1], points[i]
		length := math.Hypot(to.X-from.X, to.Y-from.Y)
		if length == 0 {
			continue
		}
		along := func(d float64) layout.Point {
			return layout.Point{X: from.X + (to.X-from.X)*d/length, Y: from.Y + (to.Y-from.Y)*d/length}
		}
		for done := 0.0; done < length; {
			step := length - done
			if line.dash > 0 {
				step = min(step, left)
			}
			if on {
				areas = append(areas, bar(along(done), along(done+step), line.width))
			}
			done += step
			if left -= step; line.dash > 0 && left <= 1e-9 {
				if on = !on; on {
					left = line.dash
				} else {
					left = line.gap
				}
			}
		}
	}
	c.fill(areas, line.colour)
}

// bar returns the area of a piece of a line. All of them have the same direction of rotation.
func bar(from, to layout.Point, width float64) []layout.Point {
	length := math.Hypot(to.X-from.X, to.Y-from.Y)
	if length == 0 {
		length = 1
	}
	dx, dy := (to.Y-from.Y)/length*width/2, (from.X-to.X)/length*width/2
	return []layout.Point{{X: from.X + dx, Y: from.Y + dy}, {X: to.X + dx, Y: to.Y + dy}, {X: to.X - dx, Y: to.Y - dy}, {X: from.X - dx, Y: from.Y - dy}}
}

func (c *bitmap) text(x, y float64, text string, size float64, bold bool, with colour) {
	key := faceKey{size, bold}
	if c.faces[key] == nil {
		c.faces[key] = faceOf(size*c.scale, bold)
	}
	d := font.Drawer{Dst: c.to, Src: image.NewUniform(with.opaque()), Face: c.faces[key]}
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(x * c.scale * 64), Y: fixed.Int26_6(y * c.scale * 64)}
	d.DrawString(text)
}
