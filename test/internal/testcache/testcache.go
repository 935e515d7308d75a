// Package testcache tells the go command what a test depends on that it does not read itself.
//
// go test keeps the result of a test until a file has changed that the test has opened, or of which it has asked what it
// is. What a program reads that the test starts, and what the program is built from, it does not see.
package testcache

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

var (
	// program is what the programs of the repository are built from, and what they read as packages.
	program = []string{"cmd", "cue", "engine", "operettatest", "schemas", "cue.mod", "go.mod", "go.sum"}
	// suite is what tests on a control plane give programs besides, or run: packages, manifests, and programs of their own.
	suite = []string{"config", "test", "Makefile"}
)

// DependOnPrograms makes the result of a test depend on what the programs of a repository are built from.
func DependOnPrograms(root string) error {
	_, err := dependOn(root, program)
	return err
}

// DependOnRepository makes it depend on everything but the documents. A test about documents reads them itself.
//
// The go command notes how the files are when the tests have ended. A file that somebody has edited since they began would
// count as tested, so the function that is returned has to be called after them: then no result is kept.
func DependOnRepository(root string) (end func() error, err error) {
	names := slices.Concat(program, suite)
	before, err := dependOn(root, names)
	if err != nil {
		return nil, err
	}
	return func() error {
		after, err := dependOn(root, names)
		if err != nil || maps.Equal(before, after) {
			return err
		}
		return keepNoResult(root)
	}, nil
}

// A version says which content of a file is meant, as far as the go command knows.
type version struct {
	size  int64
	mtime time.Time
}

// dependOn calls os.Stat for every file in some folders of a root, and returns what it says. A folder that does not exist has no
// files.
func dependOn(root string, names []string) (map[string]version, error) {
	out := map[string]version{}
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, _ fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err == nil {
				out[path] = version{info.Size(), info.ModTime()}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keepNoResult makes the test depend on a file that is new: of less than two seconds, the go command does not know whether it changes once more.
func keepNoResult(root string) error {
	dir := filepath.Join(root, "bin", "results")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, "changed-while-tests-ran")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	_, err := os.Stat(path)
	return err
}
