package crd_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"github.com/rogpeppe/go-internal/txtar"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/fault"
	"operetta.dev/test/shape"
)

// FuzzShapes builds a schema from bytes and demands that every schema has a CRD that
// the API server takes, or faults. If it has one, CUE and the API server must agree
// on the empty spec.
func FuzzShapes(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add([]byte{200, 17, 4, 90, 33, 12, 250, 8, 61, 9, 19, 240, 3, 77, 5, 130, 22, 41})
	for i := range byte(40) {
		f.Add([]byte{3, i, i + 1, i * 7, i * 3, 255 - i, i * 11, i * 5, 17 * i, i, 2 * i, 9})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := prelude + "#Spec: " + shape.Of(data) + "\n"
		input := cuecontext.New().CompileString(source, cue.Filename("fuzz.cue"))
		generated, err := crd.Generate(definitionOf(input))
		if err != nil {
			var faults fault.Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
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

const prelude = shape.Prelude

// FuzzDefaults builds schemas whose fields all have defaults, with rules that look at
// them. The API server has to take the definition of each one, but for its own rules, and
// then the empty spec, which is what its defaults are for.
func FuzzDefaults(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		data := make([]byte, 60)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := prelude + "#Spec: " + shape.Defaults(data) + "\n"
		input := cuecontext.New().CompileString(source, cue.Filename("fuzz.cue"))
		def := definitionOf(input)
		generated, err := crd.Generate(def)
		if err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		errs, err := conform.Errors(generated)
		if err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		if len(errs) > 0 {
			faults, ok := errors.AsType[fault.Faults](crd.LocateErrors(def, errs))
			// Only the rules that are wrong by themselves.
			if !ok || !strings.Contains(source, "== 4") {
				t.Fatalf("%v\n%s", errs.ToAggregate(), source)
			}
			for _, f := range faults {
				if f.Position.File == "" {
					t.Fatalf("no place: %v\n%s", f, source)
				}
			}
			return
		}
		server, err := conform.NewServer(generated, "v1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.Admit(resource(t, []byte("{}"), "spec"), nil); err != nil {
			t.Fatalf("{}: %v\n%s", err, source)
		}
	})
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
