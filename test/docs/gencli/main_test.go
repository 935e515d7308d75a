package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const root = "../../.."

func TestThePageIsCurrent(t *testing.T) {
	want, err := generate(root)
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
