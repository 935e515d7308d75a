package capsule

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// suffix is how the files of capsules end.
const suffix = ".capsule.json"

// unfinished is behind the suffix of a file that is being written.
const unfinished = ".tmp"

// fileTime is the time in the name of a file: names sort by it.
const fileTime = "20060102T150405.000Z"

// A store is the folder of capsules: KIND.GROUP/NAMESPACE/NAME/TIME.capsule.json, with _ for no namespace. Of each resource it
// keeps the newest, and of all as many as fit.
type store struct {
	dir       string
	decisions int
	limit     int64

	mu sync.Mutex
	// files are those that there are, the oldest first, and bytes how much they take.
	files []stored
	bytes int64
}

// A stored capsule is a file below the folder.
type stored struct {
	path string
	size int64
}

// openStore returns a store, with the capsules that the folder has.
func openStore(dir string, decisions int, limit int64) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &store{dir: dir, decisions: decisions, limit: limit}
	// A volume has folders of others, which may not be readable, and a file of another shape is somebody's own.
	found, err := fs.Glob(os.DirFS(dir), "*/*/*/*") // the folder itself is no pattern
	if err != nil {
		return nil, err
	}
	for _, name := range found {
		path := filepath.Join(dir, filepath.FromSlash(name))
		switch info, err := os.Lstat(path); {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasSuffix(path, suffix+unfinished): // a process has ended in between
			if err := remove(path); err != nil {
				return nil, err
			}
		case strings.HasSuffix(path, suffix):
			s.files = append(s.files, stored{path, info.Size()})
			s.bytes += info.Size()
		}
	}
	slices.SortStableFunc(s.files, func(a, b stored) int { return strings.Compare(filepath.Base(a.path), filepath.Base(b.path)) })
	return s, nil
}

// write adds the text of a capsule, and removes what is too old.
func (s *store) write(c *Capsule, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Join(s.dir, strings.ToLower(c.Resource.Kind)+"."+c.Resource.Group, cmp.Or(c.Resource.Namespace, "_"), c.Resource.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, c.Taken.Format(fileTime)+suffix)
	if err := writeFile(path, text); err != nil {
		return err
	}
	s.files = slices.DeleteFunc(s.files, func(f stored) bool { // two in one millisecond
		if f.path == path {
			s.bytes -= f.size
		}
		return f.path == path
	})
	s.files = append(s.files, stored{path, int64(len(text))})
	s.bytes += int64(len(text))
	return s.prune(dir)
}

// writeFile writes a file as a whole or not at all.
func writeFile(path string, text []byte) error {
	temporary := path + unfinished
	err := os.WriteFile(temporary, text, 0o600)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // there may be none
	}
	return err
}

// prune removes the oldest capsules of a resource, and then of all, until there are no more than wanted.
func (s *store) prune(dir string) error {
	own := 0
	for _, f := range s.files {
		if filepath.Dir(f.path) == dir {
			own++
		}
	}
	var failed []error
	s.files = slices.DeleteFunc(s.files, func(f stored) bool {
		if filepath.Dir(f.path) != dir || own <= s.decisions {
			return false
		}
		own--
		s.bytes -= f.size
		failed = append(failed, remove(f.path))
		return true
	})
	for len(s.files) > 1 && s.bytes > s.limit {
		s.bytes -= s.files[0].size
		failed = append(failed, remove(s.files[0].path))
		s.files = s.files[1:]
	}
	return errors.Join(failed...)
}

// remove removes a file, which somebody may have removed before, and the folders of its resource that are empty then.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	for range 3 {
		_ = os.Remove(dir) // it may have more files
		dir = filepath.Dir(dir)
	}
	return nil
}
