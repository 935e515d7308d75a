package docs

import (
	"cmp"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path of the product's Go module.
const module = "operetta.dev"

// imports are the packages of the product that each package imports, by their
// folders from the root. A package below one of the engine is part of that one.
type imports map[string][]string

// readImports reads what the Go files say, without the tests.
func readImports(t *testing.T) imports {
	t.Helper()
	out := imports{}
	for _, folder := range []string{"cmd/operetta", "schemas", "engine"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "internal" {
				return cmp.Or(err, fs.SkipDir)
			}
			if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				out.add(t, name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// drawnAs returns the package that stands for a folder in the picture. Most packages of the engine stand
// for the folders below them.
func drawnAs(folder string) string {
	parts := strings.Split(folder, "/")
	switch {
	case parts[0] == "schemas":
		return parts[0]
	case folder == "engine/controller/watch": // it is drawn by itself
		return "engine/watch"
	}
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// add records the imports of one file.
func (m imports) add(t *testing.T, file string) {
	t.Helper()
	rel, err := filepath.Rel(root, filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	folder := drawnAs(filepath.ToSlash(rel))
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	if m[folder] == nil {
		m[folder] = []string{}
	}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		path, ok := strings.CutPrefix(name, module+"/")
		if to := drawnAs(path); ok && to != folder && !slices.Contains(m[folder], to) {
			m[folder] = append(m[folder], to)
		}
	}
}

// reaches reports whether one package imports another, also through others.
func (m imports) reaches(from, to string) bool {
	return slices.ContainsFunc(m[from], func(next string) bool { return next == to || m.reaches(next, to) })
}

// essential returns the imports that do not follow from others.
func (m imports) essential() []string {
	var out []string
	for from, all := range m {
		for _, to := range all {
			around := slices.ContainsFunc(all, func(other string) bool { return other != to && m.reaches(other, to) })
			if !around {
				out = append(out, from+" --> "+to)
			}
		}
	}
	slices.Sort(out)
	return out
}

var arrow = regexp.MustCompile(`^\s+(\w+)(?:\["[^"]*"\])? --> (\w+)$`)

// drawn returns the arrows of the picture.
func drawn(t *testing.T) []string {
	t.Helper()
	blocks, err := read(t, "docs/architecture.md").Blocks()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, b := range blocks {
		if b.Language != "mermaid" {
			continue
		}
		for line := range strings.Lines(b.Text) {
			if m := arrow.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
				out = append(out, folderOf(m[1])+" --> "+folderOf(m[2]))
			}
		}
	}
	slices.Sort(out)
	return out
}

// folderOf returns the folder that a name in the picture or in the table stands for.
func folderOf(name string) string {
	switch path.Base(name) {
	case "operetta":
		return "cmd/operetta"
	case "schemas":
		return "schemas"
	}
	return "engine/" + path.Base(name)
}

func TestThePictureOfThePackagesIsTheImportGraph(t *testing.T) {
	have, want := drawn(t), readImports(t).essential()
	for _, w := range want {
		if !slices.Contains(have, w) {
			t.Errorf("docs/architecture.md: the arrow %s is missing", w)
		}
	}
	for _, h := range have {
		if !slices.Contains(want, h) {
			t.Errorf("docs/architecture.md: the arrow %s is wrong, or follows from others", h)
		}
	}
}

func TestEveryPackageIsInTheTable(t *testing.T) {
	var have []string
	for _, name := range column(rows(section(t, read(t, "docs/architecture.md"), "The packages").Text)) {
		have = append(have, folderOf(name))
	}
	for folder := range readImports(t) {
		if !slices.Contains(have, folder) {
			t.Errorf("docs/architecture.md: the table does not explain %s", folder)
		}
	}
}
