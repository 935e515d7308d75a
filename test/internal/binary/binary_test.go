package binary_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"operetta.dev/test/internal/binary"
)

// TestAProgramIsLinkedOnceAndWhoeverHasItKeepsIt builds a program for several packages of tests, and changes it.
func TestAProgramIsLinkedOnceAndWhoeverHasItKeepsIt(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "m"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, root, "go.mod", "module example.com/m\n\ngo 1.24\n")
	first, second, third := filepath.Join(root, "first"), filepath.Join(root, "second"), filepath.Join(root, "third")
	says := func(text string) {
		write(t, root, filepath.Join("m", "main.go"), "package main\n\nfunc main() { println(\""+text+"\") }\n")
	}

	says("before")
	build(t, root, first)
	build(t, root, second)
	if !same(t, first, second) {
		t.Error("the program was linked twice, although nothing has changed")
	}
	says("after")
	build(t, root, third)
	build(t, root, second)
	for path, want := range map[string]string{first: "before\n", second: "after\n", third: "after\n"} {
		if out, err := exec.CommandContext(t.Context(), path).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s says %q, want %q: %v", filepath.Base(path), out, want, err)
		}
	}
	if same(t, first, second) || !same(t, second, third) {
		t.Error("after a change, the old program or another one was taken")
	}
}

// TestARootMayBeRelative: the go command would take the path of the program as one below the root, and an older program would be found.
func TestARootMayBeRelative(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b") // what is built beside the root is removed as well
	inside := filepath.Join(root, "m", "inside")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, root, "go.mod", "module example.com/m\n\ngo 1.24\n")
	write(t, root, filepath.Join("m", "main.go"), "package main\n\nfunc main() {}\n")
	t.Chdir(inside)
	build(t, filepath.Join("..", ".."), filepath.Join(root, "program"))
	if !same(t, filepath.Join(root, "program"), filepath.Join(root, "bin", "tests", "m")) {
		t.Error("the program is not the one in the folder of the repository")
	}
}

func build(t *testing.T, root, to string) {
	t.Helper()
	if err := binary.To(t.Context(), root, to, "./m"); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	one, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(one, other)
}
