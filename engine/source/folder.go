package source

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// New returns a snapshot of the package in the folder dir of a module's file system. display
// returns the name under which messages show a file; nil leaves names as they are. It errors
// like Folder.
func New(fsys fs.FS, dir string, display func(string) string) (*Snapshot, error) {
	s, err := Loader{}.snapshot(fsys, dir, "", nil)
	if err == nil && display != nil {
		s.display = display
	}
	return s, err
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

// DisplayPrefix returns the prefix with which messages show the names of files: the path from the working directory
// to the module.
func (s *Snapshot) DisplayPrefix() string { return s.prefix }

// WithDisplayPrefix returns the same version of the package, whose messages show the names of files with another prefix.
func (s *Snapshot) WithDisplayPrefix(prefix string) *Snapshot {
	out := *s
	out.setDisplayPrefix(prefix)
	return &out
}

// setDisplayPrefix sets the prefix with which messages show the files of a snapshot.
func (s *Snapshot) setDisplayPrefix(prefix string) {
	s.prefix = prefix
	s.display = func(name string) string { return path.Join(prefix, cleanPath(name)) }
}
