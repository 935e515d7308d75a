package vet_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/test/reword"
)

// A version of CUE that puts its errors differently makes vet find the same: what it says of them may
// differ, and not where they are, of what kind, or that they are only a warning.
func TestWhatIsFoundDoesNotRestOnWhatCUESays(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			module := fstest.MapFS{}
			for _, f := range archive.Files {
				if name, ok := strings.CutPrefix(f.Name, "module/"); ok {
					module[name] = &fstest.MapFile{Data: f.Data}
				}
			}
			before := found(t, module)
			reword.CUE(t)
			if diff := cmp.Diff(before, found(t, module)); diff != "" {
				t.Errorf("in other words it is something else (-as CUE says it +reworded):\n%s", diff)
			}
		})
	}
}

// found returns what vet finds, without what is said about it.
func found(t *testing.T, module fstest.MapFS) map[string][]string {
	t.Helper()
	s, err := source.Loader{}.Module("shop", "", "shop", module)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	faults, warnings, _ := vet.Examine(p, nil).All()
	return map[string][]string{"faults": places(faults), "warnings": places(warnings)}
}

func places(faults fault.Faults) []string {
	var out []string
	for _, f := range faults {
		out = append(out, f.Position.String()+" "+f.Path+" "+f.Code.String())
	}
	return out
}
