package picture

import (
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
)

// fonts are those that texts are measured and drawn with.
var fonts = sync.OnceValue(func() (out struct{ regular, bold *opentype.Font }) {
	var err error
	if out.regular, err = opentype.Parse(goregular.TTF); err == nil {
		out.bold, err = opentype.Parse(gobold.TTF)
	}
	if err != nil {
		panic(err) // the fonts are a part of the program
	}
	return out
})

// faceOf returns a font in a size. A face is for one goroutine.
func faceOf(size float64, bold bool) font.Face {
	f := fonts().regular
	if bold {
		f = fonts().bold
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		panic(err) // it is one for impossible options
	}
	return face
}

// measuring are the faces that texts are measured with.
var measuring = struct {
	sync.Mutex

	faces map[bool]font.Face
}{faces: map[bool]font.Face{}}

// measureSize is the size in which texts are measured: widths grow with the size.
const measureSize = 32

// textWidth returns the width of a text.
func textWidth(text string, size float64, bold bool) float64 {
	measuring.Lock()
	defer measuring.Unlock()
	if measuring.faces[bold] == nil {
		measuring.faces[bold] = faceOf(measureSize, bold)
	}
	return float64(font.MeasureString(measuring.faces[bold], text)) / 64 * size / measureSize
}
