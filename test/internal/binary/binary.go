// Package binary builds bin/operetta as `make build` does, and tells a screen how far
// it is: the first time takes minutes.
package binary

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"operetta.dev/test/internal/gotool"
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

// packagePath is a line with which `go build -v` names a package that it compiles.
var packagePath = regexp.MustCompile(`^[A-Za-z0-9_.~/+-]+$`)

// Command returns the go command that builds the binary, for gotool.Run. It names the packages that it
// compiles. Its folder has to be the root of the repository.
func Command() *exec.Cmd {
	args := append([]string{"build", "-v"}, Flags...)
	cmd := exec.Command("go", append(args, "-o", Path, "./cmd/operetta")...)
	cmd.Env = append(os.Environ(), Environment...)
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

// To builds a program of the repository as another file. Linking takes seconds of a processor, and several packages
// of tests need the same program: it is linked into bin/tests when it has changed, and to is another name of that file.
// The go command removes a program before it writes it anew, so whoever runs one keeps it. Tests that build a program run by
// testcache.Repository.Run, or go test would keep their result whatever has changed in it.
func To(ctx context.Context, root, to, program string) error {
	root, err := filepath.Abs(root) // the go command takes a path as one below its own folder
	if err != nil {
		return fmt.Errorf("building %s: %w", program, err)
	}
	shared := filepath.Join(root, "bin", "tests", filepath.Base(program))
	if err := makeFolders(filepath.Join(root, "bin"), filepath.Dir(shared)); err != nil {
		return err
	}
	unlock, err := lock(shared + ".lock")
	if err != nil {
		return fmt.Errorf("building %s: %w", program, err)
	}
	defer unlock()
	if err := buildTo(ctx, root, shared, program); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if os.Link(shared, to) == nil {
		return nil
	}
	return buildTo(ctx, root, to, program) // it is on another file system
}

func buildTo(ctx context.Context, root, path, program string) error {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, Flags, []string{"-o", path, program})...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), Environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", program, err, out)
	}
	return nil
}

// makeFolders makes folders that do not exist. Package os would look at them first, and note for the cache of go test when a program
// was last built there.
func makeFolders(paths ...string) error {
	for _, path := range paths {
		if err := syscall.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make folder %s: %w", path, err)
		}
	}
	return nil
}

// lock waits for the exclusive lock on a file, and returns what gives it up. Package os would note for the cache of
// go test that the file was opened, and that it is new.
func lock(path string) (unlock func(), err error) {
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(fd, syscall.LOCK_EX)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = syscall.Close(fd) }, nil
}

// Build builds the binary. The working folder has to be the root of the repository.
func Build(ctx context.Context, st *screen.Step) error {
	if _, err := os.Stat(filepath.Join("cmd", "operetta")); err != nil {
		return errors.New("there is no cmd/operetta here: run it from the root of the repository")
	}
	cmd := Command()
	stale := 0
	if _, err := os.Stat(Path); err != nil { // only the first time takes long enough to be counted
		stale = gotool.Stale(ctx, cmd, Flags, []string{"./cmd/operetta"})
	}
	begin, packages := time.Now(), 0
	var complaint []string
	out := &screen.Lines{Say: func(line string) {
		if !packagePath.MatchString(line) {
			complaint = append(complaint, line)
			return
		}
		packages++
		st.Detail(gotool.Done(time.Since(begin), packages, stale))
	}}
	cmd.Stdout, cmd.Stderr = out, out
	err := gotool.Run(ctx, cmd, 0)
	out.Flush()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("go build ./cmd/operetta: %w\n%s", err, strings.Join(complaint, "\n"))
	}
	return nil
}
