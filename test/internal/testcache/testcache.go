// Package testcache tells the go command what tests depend on that they do not read themselves.
//
// go test keeps the result of tests until a file has changed that they have opened, or of which they have asked what it
// is. What a program reads that they start, and what the program is built from, it does not see. A package whose tests build
// programs of the repository runs them by Repository.Run.
package testcache

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// names are what programs of the repository are built from, and what tests give them or start besides: packages, manifests, scripts.
var names = []string{".ci", "cmd", "config", "cue", "cue.mod", "engine", "go.mod", "go.sum", "Makefile", "operettatest", "schemas", "test"}

// Repository is everything in a repository but the documents, as it was when the programs of its tests were built. A test about documents reads
// them itself.
type Repository struct {
	root   string
	before map[string]version
}

// Look returns the repository with a root. It has to be called before anything is built.
func Look(root string) (*Repository, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	before, err := look(root)
	return &Repository{root, before}, err
}

// Run runs the tests of a package, makes their result depend on the repository, and returns their exit code.
//
// The go command notes how files are when the tests have ended. One that somebody has edited since the programs were built would count
// as tested, so no result is kept then.
func (r *Repository) Run(m *testing.M) (int, error) {
	code := m.Run()
	after, err := look(r.root)
	if err != nil {
		return code, err
	}
	var log bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(after)) {
		fmt.Fprintf(&log, "stat %s\n", path)
	}
	if !maps.Equal(r.before, after) {
		log.WriteString("changed\n") // the go command does not know the word, and keeps nothing
	}
	return code, appendToLog(log.Bytes())
}

// appendToLog adds lines to what the go command reads about the tests, once they have ended. Only package testing adds to it before.
func appendToLog(lines []byte) error {
	path := flag.Lookup("test.testlogfile").Value.String()
	if path == "" {
		return nil // nobody keeps a result
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Close())
}

// A version says which content of a file is meant, as far as the go command knows.
type version struct {
	size  int64
	mtime time.Time
}

// look returns the versions of the files and folders below the names in a root: the time of a folder says that it has other files
// than before. A name that does not exist has none.
func look(root string) (map[string]version, error) {
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
