package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A module of its own has the targets, so that none of the repository's is run here.
func TestFuzzTargetsAreFoundAndFed(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles and takes its time")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module x.example\n\ngo 1.26\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc FuzzA(f *testing.F) { f.Fuzz(func(*testing.T, string) {}) }\n\nfunc FuzzB(f *testing.F) { f.Fuzz(func(*testing.T, int) {}) }\n",
		"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestB(*testing.T) {}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := fuzzRun{module: dir}.targets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, target := range got {
		names = append(names, target.pkg+"."+target.name)
	}
	if want := "x.example/a.FuzzA x.example/a.FuzzB"; strings.Join(names, " ") != want {
		t.Errorf("found %q, want %s", names, want)
	}
}

func TestExecutionsAreCounted(t *testing.T) {
	const said = "fuzz: elapsed: 3s, execs: 4733 (1578/sec), new interesting: 3 (total: 6)\nfuzz: elapsed: 20s, execs: 13259 (2819/sec), new interesting: 6 (total: 9)\nPASS\n"
	if got := executions(said); got != 13259 {
		t.Errorf("got %d", got)
	}
	if got := executions("FAIL"); got != 0 {
		t.Errorf("got %d", got)
	}
}
