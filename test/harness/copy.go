package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CopyPackage copies a package from a folder into a new module, replaces texts in all its files, and
// returns the folder of the copy.
func CopyPackage(t *testing.T, from string, replace map[string]string) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "cue", filepath.Base(from))
	for _, d := range []string{dir, filepath.Join(root, "cue.mod")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	module, err := os.ReadFile(filepath.Join(Suite.Root, "cue.mod", "module.cue"))
	if err != nil {
		t.Fatal(err)
	}
	WriteFile(t, filepath.Join(root, "cue.mod", "module.cue"), string(module))
	files, err := filepath.Glob(filepath.Join(from, "*.cue"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of a package in %s (error %v)", from, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for old, replacement := range replace {
			text = strings.ReplaceAll(text, old, replacement)
		}
		WriteFile(t, filepath.Join(dir, filepath.Base(f)), text)
	}
	return dir
}
