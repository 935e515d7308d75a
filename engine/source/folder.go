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
// the folder cannot be read or holds no CUE files; whether the files make a
// package is for the program to say.
func Folder(dir string) (*Snapshot, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", dir, err)
	}
	root := moduleRoot(abs)
	rel, err := filepath.Rel(root, abs)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", dir, err)
	}
	s, err := New(os.DirFS(root), filepath.ToSlash(rel), shownFrom(root))
	if err != nil {
		return nil, err
	}
	s.name = filepath.Base(abs) // a package may be the root of its module
	return s, nil
}

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

// shownFrom returns how files below root are shown: relative to the working
// directory where that is shorter to read, so that a terminal can open them.
func shownFrom(root string) func(string) string {
	prefix := ""
	if cwd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(cwd, root); err == nil && !strings.HasPrefix(rel, "..") {
			prefix = filepath.ToSlash(rel)
		}
	}
	return func(name string) string { return path.Join(prefix, clean(name)) }
}
