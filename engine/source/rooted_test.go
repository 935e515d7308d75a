package source_test

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/source"
)

// The declaration of a module and a package of it that imports one below its folder.
const (
	rootedModule  = "module: \"x.example/ops@v1\"\nlanguage: version: \"v0.17.0\"\nsource: kind: \"self\"\ndeps: \"y.example/lib@v0\": v: \"v0.1.0\"\n"
	rootedPackage = "package shop\nimport (\n\t\"x.example/ops/cue/shop/names\"\n\t\"y.example/lib\"\n)\n"
)

// rootedOf returns a snapshot of the package in cue/shop of some files.
func rootedOf(t *testing.T, files map[string]string, dir string) *source.Snapshot {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	s, err := source.Loader{}.Module(path.Base(dir), "", dir, fsys)
	if err != nil {
		t.Fatal(err)
	}
	return s.WithDisplayPrefix("ops")
}

func TestAPackageMayBecomeTheRootOfItsModule(t *testing.T) {
	t.Parallel()
	s := rootedOf(t, map[string]string{
		"cue.mod/module.cue": rootedModule, "cue.mod/pkg/y.example/lib/lib.cue": "package lib\n",
		"cue/shop/shop.cue": rootedPackage, "cue/shop/shop_test.cue": "package shop\n", "cue/shop/names/names.cue": "package names\n", "cue/other/other.cue": "package other\n",
	}, "cue/shop")
	files, err := s.Rooted()
	if err != nil {
		t.Fatal(err)
	}
	module := files["cue.mod/module.cue"]
	for _, want := range []string{`"x.example/ops/cue/shop@v1"`, `"v0.17.0"`, `"y.example/lib@v0"`} {
		if !strings.Contains(module, want) {
			t.Errorf("the declaration lacks %s:\n%s", want, module)
		}
	}
	got, err := source.Loader{}.Files("shop", "", ".", files)
	if err != nil {
		t.Fatal(err)
	}
	// Each file is found from the new root, with what it says.
	want := map[string]string{"cue.mod/module.cue": module, "cue.mod/pkg/y.example/lib/lib.cue": "package lib\n", "shop.cue": rootedPackage, "names/names.cue": "package names\n"}
	if diff := cmp.Diff(want, got.Texts()); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
}

func TestAPackageInTheRootOfItsModuleStaysAsItIs(t *testing.T) {
	t.Parallel()
	s := rootedOf(t, map[string]string{"cue.mod/module.cue": rootedModule, "shop.cue": "package shop\n"}, ".")
	files, err := s.Rooted()
	if diff := cmp.Diff(map[string]string{"cue.mod/module.cue": rootedModule, "shop.cue": "package shop\n"}, files); err != nil || diff != "" {
		t.Errorf("%v, the files (-want +got):\n%s", err, diff)
	}
}

func TestAPackageThatNeedsWhatIsBesideItHasNoRoot(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		says   string
	}{
		"Beside": {"the import would lead out of the module", map[string]string{"cue/shop/shop.cue": "package shop\nimport \"x.example/ops/lib\"\n", "lib/lib.cue": "package lib\n"}, "ops/lib/lib.cue"},
		"Above":  {"files of parent folders belong to the package", map[string]string{"cue/shop/shop.cue": "package shop\n", "cue/common.cue": "package shop\n"}, "ops/cue/common.cue"},
		"Prefix": {"a folder whose name only begins alike is another one", map[string]string{"cue/shop/shop.cue": "package shop\nimport \"x.example/ops/cue/shopping\"\n", "cue/shopping/a.cue": "package shopping\n"}, "ops/cue/shopping/a.cue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(tc.files)
			files["cue.mod/module.cue"] = rootedModule
			got, err := rootedOf(t, files, "cue/shop").Rooted()
			limit, is := errors.AsType[*source.LimitError](err)
			if !is || limit.Name != tc.says {
				t.Errorf("%s: %v, and files %q", tc.reason, err, slices.Sorted(maps.Keys(got)))
			}
		})
	}
}
