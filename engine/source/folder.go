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

// Folder returns a snapshot of the package in a folder on disk. It errors when the folder
// cannot be read or holds no CUE files, and with a LimitError when a file is not a regular one
// or the files exceed a limit. It does not check that the files form a valid package; package
// program does. It follows links that stay within the folder of the module.
func Folder(dir string) (*Snapshot, error) { return NewReader(dir).Read() }

// FolderWithTests returns a snapshot of the package in a folder on disk together with its tests, the files whose
// names end in _test.cue. It errors like Folder.
func FolderWithTests(dir string) (*Snapshot, error) {
	r := NewReader(dir)
	r.tests = true
	return r.Read()
}

// New returns a snapshot of the package in the folder dir of a module's file system. display
// returns the name under which messages show a file; nil leaves names as they are. It errors
// like Folder.
func New(fsys fs.FS, dir string, display func(string) string) (*Snapshot, error) {
	return newSnapshot(fsys, dir, "", display)
}

// newSnapshot is New for a package with the tests of a folder, if that is not "".
func newSnapshot(fsys fs.FS, dir, tested string, display func(string) string) (*Snapshot, error) {
	dir = cleanPath(dir)
	c, err := collect(fsys, dir, tested)
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
		tested:   tested,
		files:    all,
		authored: c.files,
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

// displayPrefix returns the prefix with which messages show the names of files below root: the
// path from the working directory to root, so that a terminal can open them, or "" if root is
// not below the working directory.
func displayPrefix(root string) string {
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

// setDisplayPrefix sets the prefix with which messages show the files of a snapshot.
func (s *Snapshot) setDisplayPrefix(prefix string) {
	s.prefix = prefix
	s.display = func(name string) string { return path.Join(prefix, cleanPath(name)) }
}
