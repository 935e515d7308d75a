package picture_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/graph/picture"
	"operetta.dev/test/machine"
)

var update = flag.Bool("update", false, "write the pictures anew")

// example has each tone and each kind of edge.
func example() picture.Picture {
	return picture.Picture{
		Title: "Thing/a in default: Waiting, 1/5 components",
		Nodes: []picture.Node{
			{Title: "config", State: "Verified", Tone: picture.Good, Lines: []picture.Line{{Text: "ConfigMap/a", Tone: picture.Good}}},
			{Title: "data", State: "Applied", Tone: picture.Waiting, Lines: []picture.Line{{Text: "StatefulSet/a: not ready", Tone: picture.Waiting}, {Text: "Pod/a-0: not ready", Tone: picture.Waiting}}},
			{Title: "web", State: "Failed", Tone: picture.Bad, Lines: []picture.Line{{Text: "Deployment/a: failed", Tone: picture.Bad}}},
			{Title: "old", State: "Deleting", Tone: picture.Absent, Lines: []picture.Line{{Text: "Service/a: being deleted", Tone: picture.Absent}}},
			{Title: "plain", Lines: []picture.Line{{Text: "Secret (token)"}}},
		},
		Edges: []picture.Edge{{From: 0, To: 1}, {From: 1, To: 2, Kind: picture.Derived}, {From: 0, To: 2, Kind: picture.OrderOnly}, {From: 0, To: 3}, {From: 3, To: 4, Kind: picture.Derived}},
	}
}

func TestAPictureIsDrawnTheSameEachTimeInEachFormat(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func() string{
		"example.svg":     func() string { return string(example().SVG()) },
		"example.dot":     func() string { return example().DOT() },
		"example.mermaid": func() string { return example().Mermaid() },
		"example.txt":     func() string { return example().EdgeList() },
		"example.json": func() string {
			text, err := json.MarshalIndent(example().Data(), "", "  ")
			if err != nil {
				t.Error(err)
			}
			return string(text) + "\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", name)
			got := draw()
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAPNGHasTheColoursOfEachTone(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	text, err := example().PNG()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := example().PNG()
	if !bytes.Equal(text, again) {
		t.Error("the same picture is another PNG")
	}
	img, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	found := map[color.RGBA]int{}
	for x := range img.Bounds().Dx() {
		for y := range img.Bounds().Dy() {
			r, g, b, _ := img.At(x, y).RGBA()
			found[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff}]++
		}
	}
	for name, c := range map[string]color.RGBA{
		"good": {0xe4, 0xf4, 0xee, 0xff}, "waiting": {0xff, 0xf3, 0xd3, 0xff}, "bad": {0xfd, 0xe5, 0xe3, 0xff}, "absent": {0xf5, 0xf6, 0xf8, 0xff},
		"a line": {0x5b, 0x65, 0x73, 0xff}, "a text": {0x1f, 0x29, 0x37, 0xff},
	} {
		if found[c] < 50 {
			t.Errorf("%s: the colour %v is in %d pixels", name, c, found[c])
		}
	}
}

// large is a picture of many components with two objects each.
func large(n int) picture.Picture {
	var p picture.Picture
	for i := range n {
		p.Nodes = append(p.Nodes, picture.Node{Title: fmt.Sprintf("component-%d", i), State: "Verified", Tone: picture.Good, Lines: []picture.Line{{Text: "Deployment/of-some-name"}, {Text: "Service/of-some-name"}}})
		if i > 0 {
			p.Edges = append(p.Edges, picture.Edge{From: (i - 1) / 2, To: i, Kind: picture.Kind(i % 3)}, picture.Edge{From: 0, To: i})
		}
	}
	return p
}

func TestAPictureOfAThousandComponentsIsBounded(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	began := time.Now()
	svg := large(1000).SVG()
	took := time.Since(began)
	image, err := large(1000).PNG()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("SVG %s, %d bytes; both %s, PNG %d bytes", took, len(svg), time.Since(began), len(image))
	if len(svg) > 4<<20 || len(image) > 32<<20 || time.Since(began) > machine.Patience {
		t.Errorf("SVG %d bytes, PNG %d bytes, %s", len(svg), len(image), time.Since(began))
	}
}

func TestAPNGThatCouldNotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	var p picture.Picture
	for i := range 3000 {
		p.Nodes = append(p.Nodes, picture.Node{Title: strings.Repeat("w", 60), Lines: []picture.Line{{Text: strings.Repeat("w", 60)}}})
		if i > 0 {
			p.Edges = append(p.Edges, picture.Edge{From: i - 1, To: i})
		}
	}
	if _, err := p.PNG(); err == nil || !strings.Contains(err.Error(), "take SVG") {
		t.Errorf("it is drawn: %v", err)
	}
}

// hostile are texts that mean something in one of the formats.
var hostile = []string{
	"</text><script>alert(1)</script>", `"]; n0 -> n1; x["`, `\" label=\"x`, "a\nb\r\nc", "\x00\x1b[31m", "&amp;&#x41;", "`#quot;`", "]]>", "\u202eright to left", "\ufffe", "\\N\\G\\l",
	"end", "click n0 call alert()", strings.Repeat("long ", 1000), "\xff\xfe",
}

func FuzzNoTextBreaksAPicture(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, title, line string) {
		p := picture.Picture{Title: title, Nodes: []picture.Node{
			{Title: title, State: line, Tone: picture.Bad, Lines: []picture.Line{{Text: line, Tone: picture.Good}, {Text: title}}}, {Title: line},
		}, Edges: []picture.Edge{{From: 0, To: 1}}}
		checkSVG(t, p.SVG())
		// Whatever the texts are, the lines are those of the harmless picture.
		plain := p
		plain.Nodes = []picture.Node{{Title: "a", State: "b", Tone: picture.Bad, Lines: []picture.Line{{Text: "c", Tone: picture.Good}, {Text: "d"}}}, {Title: "e"}}
		if got, want := strings.Count(p.Mermaid(), "\n"), strings.Count(plain.Mermaid(), "\n"); got != want {
			t.Errorf("Mermaid has %d lines instead of %d:\n%s", got, want, p.Mermaid())
		}
		for l := range strings.SplitSeq(p.Mermaid(), "\n") {
			if n := strings.Count(l, `"`); n != 0 && n != 2 {
				t.Errorf("Mermaid has an open label: %s", l)
			}
			if strings.Contains(strings.ReplaceAll(l, "<br/>", ""), "<") {
				t.Errorf("Mermaid has an element: %s", l)
			}
		}
		for l := range strings.SplitSeq(p.DOT(), "\n") {
			if !closed(l) {
				t.Errorf("DOT has an open string: %s", l)
			}
		}
	})
}

func TestAnyTextCanBeDrawn(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	var p picture.Picture
	for _, text := range hostile {
		p.Nodes = append(p.Nodes, picture.Node{Title: text, State: text, Tone: picture.Bad, Lines: []picture.Line{{Text: text}}})
	}
	if _, err := p.PNG(); err != nil {
		t.Error(err)
	}
}

// closed reports whether each string of a line of DOT ends in it.
func closed(line string) bool {
	open := false
	for i := 0; i < len(line); i++ {
		switch {
		case open && line[i] == '\\':
			i++
		case line[i] == '"':
			open = !open
		}
	}
	return !open
}

// checkSVG fails the test unless a document is well-formed and has only elements that draw.
func checkSVG(t *testing.T, document []byte) {
	t.Helper()
	known := map[string]bool{"svg": true, "title": true, "rect": true, "path": true, "polyline": true, "polygon": true, "text": true}
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the SVG is malformed: %v\n%s", err, document)
		}
		start, ok := token.(xml.StartElement)
		if ok && !known[start.Name.Local] {
			t.Fatalf("the SVG has an element %s:\n%s", start.Name.Local, document)
		}
		for _, a := range start.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Name.Local, "href") || a.Name.Local == "style" {
				t.Fatalf("the SVG has an attribute %s", a.Name.Local)
			}
		}
	}
}
