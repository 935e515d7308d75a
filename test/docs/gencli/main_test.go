package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const root = "../../.."

func TestThePageIsCurrent(t *testing.T) {
	// The cache of go test does not see what a binary is built from, unless it is read.
	sources, err := filepath.Glob(filepath.Join(root, "cmd", "operetta", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		if _, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	want, err := generate(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(output)))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not current; run go generate ./test/docs", output)
	}
}

func TestCommandsAreThoseOfTheList(t *testing.T) {
	help := "About.\n\n  # an example\n  tool vet\n\nAvailable Commands:\n  help        Help\n  run         Run it\n  vet         Check it\n\nFlags:\n  -h, --help\n"
	if got, want := commandsIn(help), []string{"run", "vet"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
