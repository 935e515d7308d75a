// Package binary builds bin/operetta as `make build` does, and tells a screen how far
// it is: the first time takes minutes.
package binary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"operetta.dev/test/internal/screen"
)

// Path is the binary, from the root of the repository.
var Path = filepath.Join("bin", "operetta")

// How the binary is built has to be the same everywhere, here, in the Makefile and in
// the Dockerfile, or each would compile again what the other did.
var (
	// Flags are those of go build, and of what else is to share its packages.
	Flags = []string{"-trimpath"}
	// Environment is added to that of go build.
	Environment = []string{"CGO_ENABLED=0"}
)

// killDelay is how long the go command may take to clean up when it is interrupted.
const killDelay = 10 * time.Second

// packagePath is a line with which `go build -v` names a package that it compiles.
var packagePath = regexp.MustCompile(`^[A-Za-z0-9_.~/+-]+$`)

// Command returns the go command that builds the binary. It names the packages that it
// compiles, and ends with the context. Its folder has to be the root of the repository.
func Command(ctx context.Context) *exec.Cmd {
	args := append([]string{"build", "-v"}, Flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", Path, "./cmd/operetta")...)
	cmd.Env = append(os.Environ(), Environment...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = killDelay
	return cmd
}

// Once returns a function that builds the binary into a folder when it is first called, and returns its path.
// The folder has to be there by then.
func Once(root string, dir *string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(*dir, "operetta")
		return path, To(context.Background(), root, path, "./cmd/operetta")
	})
}

// To builds a program of the repository as another file.
func To(ctx context.Context, root, path, program string) error {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, Flags, []string{"-o", path, program})...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), Environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", program, err, out)
	}
	return nil
}

// Build builds the binary. The working folder has to be the root of the repository.
func Build(ctx context.Context, st *screen.Step) error {
	if _, err := os.Stat(filepath.Join("cmd", "operetta")); err != nil {
		return errors.New("there is no cmd/operetta here: run it from the root of the repository")
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
	cmd := Command(ctx)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	out.Flush()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("go build ./cmd/operetta: %w\n%s", err, strings.Join(complaint, "\n"))
	}
	return nil
}
