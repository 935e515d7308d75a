package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"operetta.dev/test/internal/screen"
)

// operettaBinary is what is built, as `make build` does.
var operettaBinary = filepath.Join("bin", "operetta")

// buildArgs have to be those of `make build`, or each would link what the other did.
var buildArgs = []string{"build", "-v", "-o", operettaBinary, "./cmd/operetta"}

// packagePath is a line with which `go build -v` names a package that it compiles.
var packagePath = regexp.MustCompile(`^[A-Za-z0-9_.~/+-]+$`)

// buildOperetta builds the binary, and tells a step how far it is.
func buildOperetta(ctx context.Context, st *screen.Step) error {
	if _, err := os.Stat(filepath.Join("cmd", "operetta")); err != nil {
		return fmt.Errorf("there is no cmd/operetta here: run it from the root of the repository")
	}
	packages := 0
	var complaint []string
	out := &screen.Lines{Say: func(line string) {
		if !packagePath.MatchString(line) {
			complaint = append(complaint, line)
			return
		}
		packages++
		st.Detail(fmt.Sprintf("%d packages compiled", packages))
	}}
	cmd := exec.CommandContext(ctx, "go", buildArgs...)
	cmd.Stdout, cmd.Stderr = out, out
	// The go command removes its temporary files when interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	err := cmd.Run()
	out.Flush()
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return fmt.Errorf("go build ./cmd/operetta: %w\n%s", err, strings.Join(complaint, "\n"))
	}
	return nil
}
