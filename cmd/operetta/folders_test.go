package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBelowSaysWhichFoldersAPatternIsAbout(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, pattern, dir string
		want                 bool
	}{
		"the root":         {"a package may be there", "./cue/...", "cue", true},
		"below it":         {"it is what the pattern is for", "./cue/...", "cue/a/b", true},
		"beside it":        {"the name only begins alike", "./cue/...", "cues/a", false},
		"everything":       {"the working directory", "./...", "cue/a", true},
		"above":            {"it is out of the tree", "./...", "../cue", false},
		"absolute":         {"the user may write either", "/srv/cue/...", "/srv/cue/a", true},
		"absolute, beside": {"it is out of the tree", "/srv/cue/...", "/srv/other", false},
	} {
		if got := below([]string{row.pattern}, row.dir); got != row.want {
			t.Errorf("%s: %s, %s: %v: %s", name, row.pattern, row.dir, got, row.reason)
		}
	}
}

// TestAFolderEndsWhenItHasHadNoFilesForSomeTime looks at a tree several times, as a process does.
func TestAFolderEndsWhenItHasHadNoFilesForSomeTime(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put := func(name string) string {
		t.Helper()
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "p.cue"), []byte("package p\n\nimport \"operetta.dev/schemas/operator\"\n\noperator.#Controller\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	var ended []string
	kept, goes, edited, elsewhere := put("kept"), put("goes"), put("edited"), filepath.Join(t.TempDir(), "elsewhere")
	f := &folders{watched: map[string]context.CancelFunc{}}
	for _, dir := range []string{kept, goes, edited, elsewhere} {
		f.watched[dir] = func() { ended = append(ended, filepath.Base(dir)) }
	}
	missing := map[string]int{}
	look := func() []string {
		var out []string
		for _, dir := range f.endMissing([]string{root + "/..."}, missing) {
			out = append(out, filepath.Base(dir))
		}
		slices.Sort(ended)
		return append(out, ended...)
	}
	remove := func(dir string) {
		t.Helper()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(reason string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, look()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	expect("all are watched, and one is out of the tree")
	remove(goes)
	if err := os.WriteFile(filepath.Join(edited, "p.cue"), []byte("package p\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("it may be replaced just now, and one that does not embed the contract any more has files")
	expect("it may be replaced just now")
	put("goes")
	expect("it is there again")
	remove(goes)
	expect("it is counted anew")
	expect("it is counted anew")
	expect("it is gone", "goes")
	put("new")
	expect("a new one is to be served", "new", "goes")
}
