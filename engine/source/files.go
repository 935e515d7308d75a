package source

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"testing/fstest"
)

// maxFileName bounds the name of a file, in bytes: each folder in it is looked at.
const maxFileName = 500

// Files returns a snapshot of the package in the root of a module that is given as the texts of its files.
// origin says where they are from; see Origin. It errors like Folder, and if a name is not that of a file
// within the module.
func Files(name, origin string, files map[string]string) (*Snapshot, error) {
	if len(files) > maxFiles {
		return nil, &LimitError{".", fmt.Sprintf("it has more than %d files", maxFiles)}
	}
	fsys := fstest.MapFS{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !fs.ValidPath(file) || file == "." {
			return nil, &LimitError{fmt.Sprintf("%q", file), "it is not the name of a file within the package; names are relative, without \"..\""}
		}
		if len(file) > maxFileName {
			return nil, &LimitError{file[:40] + "...", fmt.Sprintf("its name has more than %d bytes", maxFileName)}
		}
		if len(files[file]) > maxFileSize {
			return nil, tooLargeError(file, maxFileSize)
		}
		fsys[file] = &fstest.MapFile{Data: []byte(files[file])}
	}
	for file := range fsys {
		for at := path.Dir(file); at != "."; at = path.Dir(at) {
			if fsys[at] != nil {
				return nil, &LimitError{at, "it is a file, and a folder of " + file}
			}
		}
	}
	s, err := New(fsys, ".", nil)
	if errors.Is(err, ErrNoFiles) {
		return nil, ErrNoFiles
	}
	if err != nil {
		return nil, err
	}
	s.name, s.origin = name, origin
	return s, nil
}

// Texts returns the author's files that the package needs, by their names.
func (s *Snapshot) Texts() map[string]string {
	out := map[string]string{}
	for name, f := range s.authored {
		out[name] = string(f.Data)
	}
	return out
}
