package source_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/source"
)

const keptModule = `
-- cue.mod/module.cue --
module: "example.com/m@v0"
language: version: "v0.17.0"
-- cue/shop/shop.cue --
package shop

import "example.com/m/lib"

x: lib.y
-- lib/lib.cue --
package lib

y: 1
-- other/other.cue --
package other
`

// keep keeps a version of the package in a new folder, and returns both and where it is.
func keep(t *testing.T, archive, dir string) (k *source.LastGood, folder, file string) {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	k, err := source.OpenLastGood(state)
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(onDisk(t, archive), dir)
	s, err := source.Loader{}.Folder(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Save(folder, s); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(state, "packages", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	return k, folder, files[0]
}

func TestVersionThatWasKeptIsTheSameOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ reason, archive, dir string }{
		"in a module":      {"with what it imports, and what it does not is not there", keptModule, "cue/shop"},
		"without a module": {"a plain folder", "-- x.cue --\npackage x\n", "."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, folder, _ := keep(t, c.archive, c.dir)
			want, err := source.Loader{}.Folder(folder)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(folder, "broken.cue"), "package {{{")
			got, err := k.Load(folder)
			if err != nil {
				t.Fatal(err)
			}
			type facts struct{ Name, Dir, Language, Digest, Shown string }
			of := func(s *source.Snapshot) facts {
				return facts{s.Name(), s.Dir(), s.LanguageOf("."), s.Digest(), s.Display(s.Files(s.Dir())[0])}
			}
			if diff := cmp.Diff(of(want), of(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(contents(t, want.FS()), contents(t, got.FS())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func contents(t *testing.T, fsys fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(fsys, name)
		out[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNothingIsKeptAtFirst(t *testing.T) {
	t.Parallel()
	k, err := source.OpenLastGood(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Load("somewhere"); !errors.Is(err, source.ErrNoLastGood) {
		t.Errorf("the error is %v", err)
	}
}

func TestLastVersionIsKept(t *testing.T) {
	t.Parallel()
	k, folder, file := keep(t, "-- x.cue --\npackage x\n", ".")
	writeFile(t, filepath.Join(folder, "x.cue"), "package x\n\ny: 1\n")
	second, err := source.Loader{}.Folder(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Save(folder, second); err != nil {
		t.Fatal(err)
	}
	got, err := k.Load(folder)
	if err != nil || got.Digest() != second.Digest() {
		t.Errorf("the first one is there: %v", err)
	}
	if all, _ := filepath.Glob(filepath.Dir(file) + "/*"); len(all) != 1 {
		t.Errorf("drafts are left: %v", all)
	}
}

// spoilings are ways in which a stored version may be damaged, and the error of each.
var spoilings = map[string]struct {
	reason string
	spoil  func(file string) error
	says   string
}{
	"cut off": {
		"a disk was full", func(file string) error { return os.Truncate(file, 20) }, "not an archive",
	},
	"another byte": {
		"what runs would not be what was checked", func(file string) error { return edit(file, "package x", "package y") }, "digest",
	},
	"a file that climbs": {
		"no name leads out of the package", func(file string) error { return edit(file, `"x.cue"`, `"../x.cue"`) }, "not the name of a file",
	},
	"of another folder": {
		"somebody has copied it", func(file string) error { return edit(file, `"folder":"`, `"folder":"/elsewhere`) }, "belongs to the folder /elsewhere",
	},
	"of a later format": {
		"an operator of a later version wrote it", func(file string) error { return edit(file, `"format":1`, `"format":2`) }, "format 2",
	},
	"others may write": {
		"who could write it would have the operator's rights", func(file string) error { return os.Chmod(file, 0o666) }, "others may write",
	},
	"a link": {
		"it may lead to what somebody else writes", func(file string) error {
			if err := os.Rename(file, file+".moved"); err != nil {
				return err
			}
			return os.Symlink(file+".moved", file)
		}, "not a file",
	},
	"a folder": {
		"nothing can be read there", func(file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) }, "not a file",
	},
}

// edit replaces a part of a file.
func edit(file, from, to string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !strings.Contains(string(b), from) {
		return errors.New("it has no " + from)
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(b), from, to)), 0o600)
}

func TestVersionThatIsNotAsItWasKeptIsNotRead(t *testing.T) {
	t.Parallel()
	for name, c := range spoilings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, folder, file := keep(t, "-- x.cue --\npackage x\n", ".")
			if err := c.spoil(file); err != nil {
				t.Fatal(err)
			}
			if s, err := k.Load(folder); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, %v", c.reason, s, err)
			}
			if name == "a folder" {
				return
			}
			good, err := source.Loader{}.Folder(folder)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Save(folder, good); err != nil {
				t.Errorf("the next version cannot be kept: %v", err)
			}
			if _, err := k.Load(folder); err != nil {
				t.Errorf("the next version: %v", err)
			}
		})
	}
}

func TestFolderThatOthersMayWriteToIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		make   func(packages string) error
	}{
		"writable": {"anybody could put a package there", func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o777)) }},
		"a link":   {"it leads to what somebody else owns", func(p string) error { return os.Symlink(os.TempDir(), p) }},
		"a file":   {"nothing can be kept there", func(p string) error { return os.WriteFile(p, nil, 0o600) }},
	} {
		dir := t.TempDir()
		if err := c.make(filepath.Join(dir, "packages")); err != nil {
			t.Fatal(err)
		}
		if _, err := source.OpenLastGood(dir); err == nil {
			t.Errorf("%s: %s", name, c.reason)
		}
	}
}

func TestWhatIsKeptIsForNobodyElse(t *testing.T) {
	t.Parallel()
	_, _, file := keep(t, "-- x.cue --\npackage x\n", ".")
	for path, want := range map[string]fs.FileMode{file: 0o600, filepath.Dir(file): 0o700, filepath.Dir(filepath.Dir(file)): 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil || !json.Valid(b) {
		t.Errorf("%v: %s", err, b)
	}
}
