package eval

import (
	"fmt"
	"maps"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/test/internal/markdown"
)

// everyPackage returns the packages of the repository that can be loaded, by folder: those
// of the operators, of the end-to-end tests, one with a configuration, and those in the scripts of the command.
func everyPackage(t *testing.T) map[string]*program.Program {
	t.Helper()
	out := map[string]*program.Program{}
	dirs, err := source.Expand([]string{"../../cue/...", "../e2e/packages/...", "../e2e/testdata/...", "./packages/..."})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		s, err := source.Loader{}.Folder(dir)
		if err != nil {
			t.Fatal(err)
		}
		p, err := program.Load(s)
		if err != nil {
			t.Fatal(err)
		}
		out[dir] = p
	}
	before := len(out)
	scripts, err := os.ReadDir("../../cmd/operetta/testdata/script")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		maps.Copy(out, packagesIn(t, "../../cmd/operetta/testdata/script/"+script.Name()))
	}
	if len(out)-before < 10 {
		t.Errorf("only %d packages of scripts can be loaded", len(out)-before)
	}
	before = len(out)
	pages, err := markdown.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		maps.Copy(out, packagesOf(t, page))
	}
	if len(out)-before < 6 {
		t.Errorf("only %d packages of the documents can be loaded", len(out)-before)
	}
	return out
}

// packagesOf returns the packages of a document as they are after each block that changes one.
func packagesOf(t *testing.T, page markdown.Document) map[string]*program.Program {
	t.Helper()
	versions, err := page.Versions()
	if err != nil {
		t.Fatal(err)
	}
	out, seen := map[string]*program.Program{}, map[string]bool{}
	for i, version := range versions {
		files := fstest.MapFS{}
		for name, text := range version {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		for dir, p := range packagesAmong(files) {
			if digest := p.Digest(); !seen[digest] {
				seen[digest] = true
				out[fmt.Sprintf("%s/%s, version %d", page.Name, dir, i+1)] = p
			}
		}
	}
	return out
}

// packagesIn returns the packages of a script.
func packagesIn(t *testing.T, file string) map[string]*program.Program {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	out := map[string]*program.Program{}
	for dir, p := range packagesAmong(files) {
		out[strings.TrimPrefix(file, "../../")+"/"+dir] = p
	}
	return out
}

// packagesAmong returns the packages that can be loaded, by folder; others are there to be refused.
func packagesAmong(all fstest.MapFS) map[string]*program.Program {
	files, dirs := fstest.MapFS{}, map[string]bool{}
	for name, f := range all {
		if dir, _, ok := strings.Cut(name, "/"); ok && strings.HasSuffix(name, ".cue") && strings.Count(name, "/") == 1 {
			files[name], dirs[dir] = f, true
		}
	}
	out := map[string]*program.Program{}
	for dir := range dirs {
		s, err := source.Loader{}.Module(path.Base(dir), "", dir, files)
		if err != nil {
			continue
		}
		p, err := program.Load(s)
		if err != nil {
			continue
		}
		if faults, _, _ := vet.Examine(p, nil).All(); len(faults) == 0 {
			out[dir] = p
		}
	}
	return out
}
