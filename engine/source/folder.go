package source

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"operetta.dev/schemas"
)

// Folder returns a snapshot of the package in a folder on disk. It errors when
// the folder cannot be read or holds no CUE files, and with a LimitError when one of
// them is no regular file or there is too much of them; whether the files make a
// package is for the program to say. Links are followed as long as they stay within
// the folder of the module.
func Folder(dir string) (*Snapshot, error) { return NewReader(dir).Read() }

// New returns a snapshot of the package in the folder dir of a module's file
// system. Display gives the name under which a file is shown to a person; nil
// leaves names as they are.
func New(fsys fs.FS, dir string, display func(string) string) (*Snapshot, error) {
	dir = clean(dir)
	c, err := collect(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", dir, err)
	}
	all, err := withSchemas(c.files, c.module, c.language, schemas.Light())
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", dir, err)
	}
	if display == nil {
		display = func(name string) string { return name }
	}
	return &Snapshot{
		name:     c.packageName(dir),
		dir:      dir,
		module:   c.module,
		language: c.language,
		digest:   digestOf(c.files),
		display:  display,
		files:    all,
		own:      c.files,
	}, nil
}

// moduleRoot returns the closest folder at or above dir that holds a CUE module,
// or dir itself when there is none.
func moduleRoot(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, filepath.FromSlash(moduleFile))); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// shownPrefix returns what stands before the names of files below root where they are shown:
// the way there from the working directory where that is shorter to read, so that a terminal
// can open them.
func shownPrefix(root string) string {
	cwd, err := os.Getwd()
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(cwd, root)
	if err != nil || strings.HasPrefix(rel, "..") {
		return ""
	}
	return filepath.ToSlash(rel)
}

// shownBelow makes the files of a snapshot be shown with a prefix.
func (s *Snapshot) shownBelow(prefix string) {
	s.prefix = prefix
	s.display = func(name string) string { return path.Join(prefix, clean(name)) }
}
