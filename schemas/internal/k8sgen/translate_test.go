package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// shop are the packages of testdata/translate.txtar.
var shop = []source{
	{goPath: "k8s.io/apimachinery/pkg/apis/meta/v1", dir: "meta/v1", alias: "metav1", support: true},
	{goPath: "example.com/shop/v1", dir: "shop/v1", alias: "shopv1"},
}

func TestTranslate(t *testing.T) {
	const golden = "testdata/translate.txtar"
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := parse(unpack(t, archive), shop)
	if err != nil {
		t.Fatal(err)
	}
	prune(pkgs)
	of := func(f form) func() ([]byte, error) {
		return func() ([]byte, error) {
			files, err := renderAll(pkgs, f)
			return files["shop/v1/types.cue"], err
		}
	}
	forms := map[string]func() ([]byte, error){
		"want/full.cue": of(fullForm), "want/light.cue": of(lightForm),
		"want/rules.json": func() ([]byte, error) { return renderRules(pkgs) },
	}
	for i, f := range archive.Files {
		render, ok := forms[f.Name]
		if !ok {
			continue
		}
		text, err := render()
		if err != nil {
			t.Fatal(err)
		}
		got := string(text)
		if diff := cmp.Diff(string(f.Data), got); diff != "" && os.Getenv("UPDATE") == "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
		archive.Files[i].Data = []byte(got)
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSupportPackagesHoldWhatIsReferredTo(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/translate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := parse(unpack(t, archive), shop)
	if err != nil {
		t.Fatal(err)
	}
	prune(pkgs)
	var got []string
	for _, d := range pkgs[0].decls {
		got = append(got, d.name)
	}
	want := []string{"ObjectMeta", "ListMeta", "Time", "NamespaceDefault"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions of meta/v1 (-want +got):\n%s", diff)
	}
}

func TestTypesWithoutCUEAreErrors(t *testing.T) {
	cases := map[string]struct{ reason, member, want string }{
		"Channel": {"A type that is no data.", "F chan int `json:\"f\"`", "T.f"},
		"Foreign": {"A type of a package that is not read.", "F other.Thing `json:\"f\"`", "other.Thing"},
		"Missing": {"A type that is not declared.", "F Nothing `json:\"f\"`", "Nothing"},
		"Embed":   {"A struct of a package that is not read.", "other.Thing `json:\",inline\"`", "other.Thing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := "package v1\n\nimport \"example.com/other\"\n\ntype T struct {\n\t" + tc.member + "\n}\n"
			archive := &txtar.Archive{Files: []txtar.File{{Name: "shop/v1/types.go", Data: []byte(text)}}}
			pkgs, err := parse(unpack(t, archive), shop[1:])
			if err != nil {
				t.Fatal(err)
			}
			prune(pkgs)
			if _, err = renderAll(pkgs, fullForm); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\ngot error %v, want one that names %s", tc.reason, err, tc.want)
			}
		})
	}
}

// unpack writes the Go files of an archive, and returns them as the modules to read.
func unpack(t *testing.T, archive *txtar.Archive) modules {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		file := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return modules{
		{Path: "k8s.io/apimachinery/pkg/apis", Version: "v0.0.1", Dir: dir},
		{Path: "example.com", Version: "v1.2.3", Dir: dir},
	}
}
