package source_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/source"
)

func TestFilesAreTheSamePackageAsAFolder(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.cue": "package a\nimport \"x.example/y\"\n", "cue.mod/module.cue": "module: \"x.example\"\nlanguage: version: \"v0.17.0\"\n", "y/y.cue": "package y\n", "README.md": "text"}
	s, err := source.Loader{}.Files("shop", "Package shop", ".", files)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for name, text := range files {
		if name != "README.md" {
			want[name] = text
		}
	}
	if diff := cmp.Diff(want, s.Texts()); diff != "" {
		t.Errorf("the files that are needed (-want +got):\n%s", diff)
	}
	again, err := source.Loader{}.Files("other", "", ".", s.Texts())
	if err != nil || again.Digest() != s.Digest() || s.Name() != "shop" || s.Origin() != "Package shop" {
		t.Errorf("%v: what is kept has the digest %s, and what was read %s, of %s", err, again.Digest(), s.Digest(), s.Name())
	}
}

func TestFilesThatAreNoPackageAreRefused(t *testing.T) {
	t.Parallel()
	good := "package a\n"
	many := map[string]string{}
	for i := range 1001 {
		many[fmt.Sprint(i, ".cue")] = good
	}
	for name, row := range map[string]struct {
		reason string
		files  map[string]string
		says   string
	}{
		"a parent":            {"it is out of the package", map[string]string{"../a.cue": good}, `"../a.cue"`},
		"a parent in between": {"it is out of the package", map[string]string{"x/../../a.cue": good}, `"x/../../a.cue"`},
		"absolute":            {"it is out of the package", map[string]string{"/a.cue": good}, `"/a.cue"`},
		"empty":               {"it is no name", map[string]string{"": good}, `""`},
		"the folder itself":   {"it is no file", map[string]string{".": good}, `"."`},
		"a folder and a file": {"one of both would be lost", map[string]string{"a": good, "a/b.cue": good}, "it is a file"},
		"a very large file":   {"it would fill the memory", map[string]string{"a.cue": strings.Repeat("x", 1<<20+1)}, "more than"},
		"very many files":     {"they would fill the memory", many, "more than 1000 files"},
		"what is not UTF-8":   {"CUE is text", map[string]string{"a.cue": "package a\n\xff"}, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := source.Loader{}.Files("a", "", ".", row.files)
			limit, ok := errors.AsType[*source.LimitError](err)
			if !ok || !strings.Contains(limit.Error(), row.says) {
				t.Errorf("%s: the error is %v", row.reason, err)
			}
		})
	}
	if _, err := (source.Loader{}).Files("a", "", ".", map[string]string{"a.txt": good}); !errors.Is(err, source.ErrNoFiles) {
		t.Errorf("without CUE files the error is %v", err)
	}
}
