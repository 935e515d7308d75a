package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"operetta.dev/engine/source"
	"operetta.dev/engine/testcase"
)

// updateTests writes what is decided into the files of the tests in a folder, where a test wants something else. It
// notes which, reports whether it has changed a file, and errors if one cannot be read or written.
func updateTests(notes io.Writer, dir string, results []testcase.Result) (bool, error) {
	var differences []testcase.Difference
	for _, r := range results {
		differences = append(differences, r.Differences...)
	}
	files, err := filesIn(dir, source.TestSuffix)
	if err != nil {
		return false, err
	}
	changed := false
	for _, file := range files {
		if !slices.ContainsFunc(differences, func(d testcase.Difference) bool { return path.Base(d.Position.File) == filepath.Base(file) }) {
			continue
		}
		replaced, err := updateFile(file, differences)
		if err != nil {
			return changed, err
		}
		if replaced > 0 {
			changed = true
			printLinef(notes, "updated  %s: %s", file, count(replaced, "value"))
		}
	}
	return changed, nil
}

// updateFile writes what is decided into one file, as a whole or not at all. It returns how many values it has replaced.
func updateFile(file string, differences []testcase.Difference) (int, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	updated, replaced, err := testcase.Update(file, text, differences)
	if err != nil || replaced == 0 {
		return 0, err
	}
	if err := replaceFile(file, updated, info.Mode().Perm()); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return replaced, nil
}

// replaceFile replaces a file, so that it is never half written.
func replaceFile(file string, content []byte, mode os.FileMode) error {
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		file = resolved
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".operetta-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // it is gone if it has replaced the file
	_, err = temporary.Write(content)
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(temporary.Name(), mode)
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}
