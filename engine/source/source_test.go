package source_test

import (
	"embed"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

//go:embed testdata/embedded
var embedded embed.FS

// module is a module with packages that do and do not matter to module/cue/shop.
const module = `
-- cue.mod/module.cue --
module: "example.com/shops@v0"
language: version: "v0.16.0"
-- cue/shop/shop.cue --
package shop

import (
	"strings"
	"operetta.dev/schemas/operator"
	"example.com/shops/lib/names"
	"other.example/x@v1:y"
	"nowhere.example/z"
)

operator.#Controller
-- cue/shop/broken.cue --
package shop

x: {
-- cue/shop/shop_test.cue --
package shop
-- cue/shop/_hidden.cue --
package shop
-- cue/shop/notes.txt --
nothing
-- cue/above.cue --
package shop
-- cue/stranger.cue --
package stranger
-- cue/other/other.cue --
package other
-- lib/names/names.cue --
package names

import "example.com/shops/lib/deep"
-- lib/deep/deep.cue --
package deep

import "example.com/shops/lib/names"
-- lib/unused/unused.cue --
package unused
-- cue.mod/pkg/other.example/x/x.cue --
package y
-- cue.mod/gen/other.example/x/gen.cue --
package y
-- cue.mod/pkg/other.example/unused/unused.cue --
package unused
-- cue.mod/pkg/operetta.dev/schemas/operator/operator.cue --
package operator
`

func tree(t testing.TB, archive string) fs.FS {
	t.Helper()
	fsys, err := txtar.FS(txtar.Parse([]byte(archive)))
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// onDisk writes an archive into a folder of its own.
func onDisk(t testing.TB, archive string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, tree(t, archive)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// own returns the files of a snapshot without those of the engine.
func own(t testing.TB, s *source.Snapshot) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(s.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(name, "operetta.dev/") && !strings.HasPrefix(name, "schemas/") {
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestASnapshotHasWhatThePackageNeeds(t *testing.T) {
	t.Parallel()
	s, err := source.Loader{}.Module("shop", "", "cue/shop", tree(t, module))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"cue/above.cue", // a package extends its namesake above it
		"cue/shop/broken.cue",
		"cue/shop/shop.cue",
		"cue.mod/gen/other.example/x/gen.cue",
		"cue.mod/module.cue",
		"cue.mod/pkg/other.example/x/x.cue",
		"lib/deep/deep.cue",
		"lib/names/names.cue",
	}
	if diff := cmp.Diff(want, own(t, s), cmp.Transformer("set", func(in []string) map[string]bool {
		out := map[string]bool{}
		for _, name := range in {
			out[name] = true
		}
		return out
	})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	contract, err := fs.ReadFile(s.FS(), "cue.mod/pkg/operetta.dev/schemas/operator/operator.cue")
	if err != nil || !strings.Contains(string(contract), "#Controller") {
		t.Errorf("the contract is not the engine's: %v\n%s", err, contract)
	}
	if s.Name() != "shop" || s.Dir() != "cue/shop" || s.LanguageOf(".") != "v0.16.0" {
		t.Errorf("name %s, dir %s, language %s", s.Name(), s.Dir(), s.LanguageOf("."))
	}
}

func TestFoldersOfAnImport(t *testing.T) {
	t.Parallel()
	s, err := source.Loader{}.Module("shop", "", "cue/shop", tree(t, module))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		path   string
		want   []string
	}{
		"of the module":          {"an import path is a path below the module", "example.com/shops/lib/names", []string{"lib/names"}},
		"with a version":         {"a snapshot has one version of each", "example.com/shops/lib/names@v0", []string{"lib/names"}},
		"vendored":               {"stock cue unifies what is in gen, pkg and usr", "other.example/x@v1:y", []string{"cue.mod/gen/other.example/x", "cue.mod/pkg/other.example/x"}},
		"of the engine":          {"the contract is in the binary", "operetta.dev/schemas/operator", []string{"cue.mod/pkg/operetta.dev/schemas/operator"}},
		"of no package":          {"the compiler says so", "nowhere.example/z", nil},
		"of an unused package":   {"what nobody imports is not there", "example.com/shops/lib/unused", nil},
		"of a schema of no kind": {"the engine has some of them", "operetta.dev/schemas/k8s/nothing", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.Folders(c.path)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestTheDigestIsOfTheAuthorsFiles(t *testing.T) {
	t.Parallel()
	digest := func(archive, dir string) string {
		s, err := source.Loader{}.Module(path.Base(dir), "", dir, tree(t, archive))
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest()
	}
	base := digest(module, "cue/shop")
	cases := map[string]struct {
		reason  string
		archive string
		same    bool
	}{
		"the same files":           {"a restart changes nothing", module, true},
		"another package":          {"it is not this one", strings.Replace(module, "package other\n", "package other\n\nx: 1\n", 1), true},
		"an unused vendored one":   {"it is not this one", strings.Replace(module, "package unused\n", "package unused\n\nx: 1\n", 2), true},
		"the package":              {"this is what a new version is", strings.Replace(module, "operator.#Controller", "operator.#Controller & {}", 1), false},
		"an imported package":      {"it is part of what runs", strings.Replace(module, "package deep\n", "package deep\n\ny: 1\n", 1), false},
		"a vendored package":       {"it is part of what runs", strings.Replace(module, "package y\n", "package y\n\ny: 1\n", 1), false},
		"the module":               {"the language version decides what the files mean", strings.Replace(module, "v0.16.0", "v0.17.0", 1), false},
		"the name of a file":       {"names are shown to people", strings.Replace(module, "shop/broken.cue", "shop/broke.cue", 1), false},
		"text moved between files": {"lengths keep them apart", strings.Replace(strings.Replace(module, "x: {\n", "x: \n", 1), "package shop\n\nimport", "{package shop\n\nimport", 1), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := digest(c.archive, "cue/shop")
			if same := got == base; same != c.same {
				t.Errorf("%s: %s and %s", c.reason, base, got)
			}
			if !strings.HasPrefix(got, "sha256:") || len(got) != 7+64 {
				t.Errorf("no digest: %s", got)
			}
		})
	}
}

func TestWhatIsNoPackageIsAnError(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, archive, dir, want string
	}{
		"a folder that is not there": {"a typo on the command line", module, "cue/nope", "package cue/nope: reading the package: open cue/nope: file does not exist"},
		"a folder without CUE":       {"the wrong folder", "-- a/b.txt --\n", "a", "package a: no CUE files in this folder"},
		"a module without a version": {"stock cue asks for one", "-- cue.mod/module.cue --\nmodule: \"a.b/c\"\n-- x.cue --\npackage x\n", ".", "package .: reading the module: no language version declared in module.cue"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := source.Loader{}.Module(path.Base(c.dir), "", c.dir, tree(t, c.archive))
			if err == nil || err.Error() != c.want {
				t.Errorf("%s\nwant %s\ngot  %v", c.reason, c.want, err)
			}
		})
	}
}

// Each row loads a package from somewhere, with the contract of the binary.
func TestAPackageLoadsFromAnywhere(t *testing.T) {
	t.Parallel()
	const alone = "package shop\n\nimport \"operetta.dev/schemas/operator\"\n\noperator.#Controller\n\ngroup: \"shop.example\"\nkind: \"Shop\"\nversions: v1: spec: {}\n"
	cases := map[string]struct {
		reason string
		read   func() (*source.Snapshot, error)
		name   string
	}{
		"an embedded file system": {"a binary may bring its packages", func() (*source.Snapshot, error) {
			return source.Loader{}.Module("shop", "", "testdata/embedded/shop", embedded)
		}, "shop"},
		"a file system in memory": {"tests do", func() (*source.Snapshot, error) {
			return source.Loader{}.Module("shop", "", ".", fstest.MapFS{"shop.cue": {Data: []byte(alone)}})
		}, "shop"},
		"a folder outside any module": {"a mounted ConfigMap", func() (*source.Snapshot, error) {
			dir := filepath.Join(onDisk(t, "-- corner/shop.cue --\n"+alone), "corner")
			return source.Loader{}.Folder(dir)
		}, "corner"},
		"links to files, as a ConfigMap is mounted": {"the files are links into a hidden folder", func() (*source.Snapshot, error) {
			dir := onDisk(t, "-- ..2026/shop.cue --\n"+alone)
			for link, to := range map[string]string{"..data": "..2026", "shop.cue": "..data/shop.cue"} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					return nil, err
				}
			}
			return source.Loader{}.Folder(dir)
		}, ""},
		"the root of a module": {"a repository with one operator", func() (*source.Snapshot, error) {
			dir := onDisk(t, "-- shops/cue.mod/module.cue --\nmodule: \"example.com/shops@v0\"\nlanguage: version: \"v0.17.0\"\n-- shops/shop.cue --\n"+alone)
			return source.Loader{}.Folder(filepath.Join(dir, "shops"))
		}, "shops"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			p, err := program.Load(s)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if c.name != "" && p.Name() != c.name {
				t.Errorf("%s: name %s, want %s", c.reason, p.Name(), c.name)
			}
		})
	}
}

func TestFilesAreShownAsTheyAreNamed(t *testing.T) {
	t.Parallel()
	s, err := source.Loader{}.Module("shop", "", "cue/shop", tree(t, module))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.WithDisplayPrefix("shown").Display("cue/shop/shop.cue"); got != "shown/cue/shop/shop.cue" {
		t.Errorf("got %s", got)
	}
	plain, err := source.Loader{}.Folder("testdata/embedded/shop")
	if err != nil {
		t.Fatal(err)
	}
	// The package is in the module of this repository; what is shown is a path that a
	// terminal in the working directory can open, or else one within the module.
	if got := plain.Display(plain.Dir() + "/shop.cue"); !strings.HasSuffix(got, "testdata/embedded/shop/shop.cue") {
		t.Errorf("got %s", got)
	}
}

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
