package source

import (
	"os"
	"path/filepath"
	"strings"
)

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
	out.prefix = prefix
	return &out
}
