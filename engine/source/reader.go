package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// A Reader reads the package in a folder repeatedly. While nothing changes, it only checks the
// sizes and modification times of the files.
type Reader struct {
	dir string
	// tests is true if the tests of the package are read, too.
	tests  bool
	loader Loader

	last *Snapshot
	err  error
	// module is what was read of the package's module, overlays is what was read of each overlay.
	module   reading
	overlays []reading
}

// A reading is what was read below a folder.
type reading struct {
	// root is the folder, stats are the files and folders that were read or looked
	// for in it, and at is when that began.
	root  string
	stats map[string]fs.FileInfo
	at    time.Time
}

// beginReading returns a reading of a folder that begins now.
func beginReading(root string) reading { return reading{root: root, at: time.Now()} }

// Read returns and errors like Folder.
func (r *Reader) Read() (*Snapshot, error) {
	if r.unchanged() {
		return r.last, r.err
	}
	overlays, overlaysRead, err := readOverlays(r.loader.Overlays)
	if err != nil {
		return nil, err
	}
	read := beginReading("")
	abs, root, rel, err := locate(r.dir)
	if err != nil {
		return nil, err
	}
	d, err := openDisk(root)
	if err != nil {
		return nil, fmt.Errorf("package %s: reading the package: %w", rel, err)
	}
	defer d.root.Close()
	tested := ""
	if r.tests {
		tested = cleanPath(rel)
	}
	s, err := r.loader.snapshot(d, rel, tested, overlays)
	if err == nil {
		s.name = filepath.Base(abs) // a package may be the root of its module
		s.origin = "folder " + r.dir
		s.prefix = displayPrefix(root)
	}
	if wrong, ok := errors.AsType[*DependencyError](err); ok {
		wrong.File = path.Join(displayPrefix(root), wrong.File)
	}
	read.root, read.stats = root, d.stats
	r.last, r.err, r.module, r.overlays = s, err, read, overlaysRead
	return s, err
}

// unchanged reports whether the files are the same as at the last reading.
func (r *Reader) unchanged() bool {
	var limit *LimitError
	if r.module.root == "" || r.err != nil && !errors.As(r.err, &limit) {
		return false
	}
	if _, root, _, err := locate(r.dir); err != nil || root != r.module.root || !r.module.unchanged() {
		return false
	}
	return !slices.ContainsFunc(r.overlays, func(o reading) bool { return !o.unchanged() })
}

// unchanged reports whether the files are the same as when they were read.
func (r reading) unchanged() bool {
	if time.Since(r.at) > rereadInterval {
		return false
	}
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return false
	}
	defer root.Close()
	for name, was := range r.stats {
		now, err := root.Stat(name)
		switch {
		case was == nil && errors.Is(err, fs.ErrNotExist):
		case was == nil || err != nil,
			!os.SameFile(was, now) || was.Size() != now.Size() || was.Mode() != now.Mode() || !was.ModTime().Equal(now.ModTime()),
			r.at.Sub(was.ModTime()) < mtimeGranularity:
			return false
		}
	}
	return true
}

// ModuleOf returns the folder of the module that the package in a folder belongs to, and the package's folder in
// it, with slashes. It errors if the folder has no absolute path.
func ModuleOf(dir string) (root, rel string, err error) {
	_, root, rel, err = locate(dir)
	return root, rel, err
}

// locate returns the absolute path of a package's folder, the folder of its module, and the
// path of the former relative to the latter.
func locate(dir string) (abs, root, rel string, err error) {
	if abs, err = filepath.Abs(dir); err != nil {
		return "", "", "", fmt.Errorf("package %s: %w", dir, err)
	}
	root = moduleRoot(abs)
	if rel, err = filepath.Rel(root, abs); err != nil {
		return "", "", "", fmt.Errorf("package %s: %w", dir, err)
	}
	return abs, root, filepath.ToSlash(rel), nil
}
