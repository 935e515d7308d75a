package crd_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"github.com/rogpeppe/go-internal/txtar"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
)

// FuzzShapes builds a schema from bytes and demands of every one that it has a CRD that
// the API server takes, or faults. If it has one, CUE and the API server must agree
// on the empty spec.
func FuzzShapes(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add([]byte{200, 17, 4, 90, 33, 12, 250, 8, 61, 9, 19, 240, 3, 77, 5, 130, 22, 41})
	for i := range byte(40) {
		f.Add([]byte{3, i, i + 1, i * 7, i * 3, 255 - i, i * 11, i * 5, 17 * i, i, 2 * i, 9})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		shape := shaper{data: data}
		source := prelude + "#Spec: " + shape.structure(4) + "\n"
		input := cuecontext.New().CompileString(source, cue.Filename("fuzz.cue"))
		generated, err := crd.Generate(definitionOf(input))
		if err != nil {
			var faults *crd.Error
			if !errors.As(err, &faults) || len(faults.Faults) == 0 {
				t.Fatalf("untyped error %v of\n%s", err, source)
			}
			return
		}
		if err := conform.Check(generated); err != nil {
			if strings.Contains(err.Error(), "estimated rule cost") {
				return // of @crd(immutable) in a map without limits; there is no other way to learn it
			}
			t.Fatalf("%v\n%s", err, source)
		}
		server, err := conform.NewServer(generated, "v1")
		if err != nil {
			t.Fatal(err)
		}
		_, serverErr := server.Admit(resource(t, []byte("{}"), "spec"), nil)
		_, cueErr := evaluate(input.LookupPath(cue.ParsePath("#Spec")), map[string]any{})
		if (serverErr == nil) != (cueErr == nil) {
			t.Fatalf("{}: CUE: %v; the API server: %v\n%s", cueErr, serverErr, source)
		}
	})
}

const prelude = `import (
	"list"
	"strings"
	"struct"
	"time"
)
#Bounded: int & >=1 & <=10
#Enum:    "a" | "b" | "c"
#Sub:     {x: int | *1, y?: string}
#Must:    {x!: int}
#Tree:    {v: int, kids?: [...#Tree]}
#List:    [...string] & list.MinItems(1)
_unused:  [list.MinItems(1), strings.MinRunes(1), struct.MinFields(1), time.Duration]
`

// shaper turns bytes into CUE. It always ends: every choice takes a byte, and
// without bytes left the first choice is taken, which is a leaf.
type shaper struct {
	data []byte
}

func (s *shaper) choose(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % n
}

var leaves = []string{
	"int", "string", "bool", "number", "bytes", "float", "null", "_", "{...}", "uint8", "int32", "uint64",
	"int & >=1 & <=100", "int | *3", "#Bounded | *2", "int & >0 | *0", `#Enum`, `#Enum | *"b"`, `*"x" | string`,
	`=~"^a" | *"ab"`, `!="" | *"z"`, `strings.MinRunes(2) & strings.MaxRunes(4)`, `time.Duration | *"1s"`,
	"int | string", `int | string | *"x"`, "null | string", "*null | int", `null | "a" | "b"`, "1 | 2 | *3", "true", `"const"`, "1.5",
	"[...int]", "#List", `#List | *["a"]`, "[string, ...string]", "[int, int]", "[...string] | *[]", "[int, string]",
	"{[string]: int}", "{[string]: #Sub}", "{[string]: int} & struct.MinFields(1)", "#Sub", "#Must", "#Tree", "#Sub | *{x: 5}",
	"null | #Sub", "#Sub | #Must", "f0", "int & >=f1", `"x-\(f0)"`, "number | string", "_ @crd(preserveUnknownFields)", "string @crd(immutable)",
	"[...#Must] @crd(listType=map,listMapKey=x)", "[...#Sub] @crd(listType=map,listMapKey=x)", "int & string",
}

func (s *shaper) value(depth int) string {
	if depth == 0 {
		return leaves[s.choose(len(leaves))]
	}
	switch s.choose(8) {
	case 0, 1, 2, 3:
		return leaves[s.choose(len(leaves))]
	case 4:
		return s.structure(depth - 1)
	case 5:
		return "[..." + s.structure(depth-1) + "]"
	case 6:
		return "{[string]: " + s.structure(depth-1) + "}"
	}
	return "{#Sub, " + strings.TrimPrefix(s.structure(depth-1), "{")
}

func (s *shaper) structure(depth int) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range s.choose(5) {
		marker := []string{"", "", "?", "!"}[s.choose(4)]
		fmt.Fprintf(&b, "f%d%s: %s\n", i, marker, s.value(depth))
	}
	b.WriteString("}")
	return b.String()
}

// FuzzText gives the generator whatever compiles.
func FuzzText(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(file(archive, "input.cue")))
	}
	f.Fuzz(func(t *testing.T, source string) {
		input := cuecontext.New().CompileString(source, cue.Filename("fuzz.cue"))
		if generated, err := crd.Generate(definitionOf(input)); err == nil {
			if err := conform.Check(generated); err != nil && !strings.Contains(source, "@crd") {
				t.Fatalf("%v\n%s", err, source)
			}
		}
	})
}
