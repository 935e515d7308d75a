package crd_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/fault"
	"operetta.dev/test/reword"
)

// A version of CUE that puts its errors differently gives the same definitions, and refuses the same
// fields of the same schemas.
func TestNoDefinitionRestsOnWhatCUESays(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := file(archive, "input.cue")
			before := generated(t, text)
			reword.CUE(t)
			if diff := cmp.Diff(before, generated(t, text)); diff != "" {
				t.Errorf("in other words it is something else (-as CUE says it +reworded):\n%s", diff)
			}
		})
	}
}

// generated returns the definition for a schema as YAML, or the places of the faults without what is said about them.
func generated(t *testing.T, text []byte) []string {
	t.Helper()
	input := cuecontext.New().CompileBytes(text, cue.Filename("input.cue"))
	result, err := crd.Generate(definitionOf(input))
	if faults, ok := errors.AsType[fault.Faults](err); ok {
		var out []string
		for _, f := range faults {
			out = append(out, f.Position.String()+" "+f.Path)
		}
		return out
	}
	if err != nil {
		t.Fatal(err)
	}
	whole, err := crd.YAML(result)
	if err != nil {
		t.Fatal(err)
	}
	return []string{string(whole)}
}
