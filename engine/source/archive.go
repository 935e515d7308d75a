package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"testing/fstest"
)

// archive is a snapshot as one file: what its author wrote, and nothing of the engine's.
type archive struct {
	// Format is archiveFormat.
	Format int `json:"format"`
	// Folder is the folder that it was read from, as an absolute path.
	Folder string `json:"folder"`
	Name   string `json:"name"`
	// Dir is the package's folder within the module.
	Dir    string            `json:"dir"`
	Digest string            `json:"digest"`
	Files  map[string]string `json:"files"`
}

// archiveFormat is the only format that there is so far.
const archiveFormat = 1

// encode returns the archive of a snapshot of a folder.
func encode(folder string, s *Snapshot) ([]byte, error) {
	a := archive{Format: archiveFormat, Folder: folder, Name: s.name, Dir: s.dir, Digest: s.digest, Files: map[string]string{}}
	for name, f := range s.own {
		a.Files[name] = string(f.Data)
	}
	return json.Marshal(a)
}

// decode returns the snapshot of a folder in an archive. It errors when it is of another
// folder, or its files are not those that were kept.
func decode(folder string, data []byte) (*Snapshot, error) {
	var a archive
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("it is no archive: %w", err)
	}
	if a.Format != archiveFormat {
		return nil, fmt.Errorf("it is of format %d, and this version reads format %d", a.Format, archiveFormat)
	}
	if a.Folder != folder {
		return nil, fmt.Errorf("it is of the folder %s", a.Folder)
	}
	files := fstest.MapFS{}
	for _, name := range slices.Sorted(maps.Keys(a.Files)) {
		if path.Clean("/"+name) != "/"+name {
			return nil, fmt.Errorf("%q is not the name of a file", name)
		}
		files[name] = &fstest.MapFile{Data: []byte(a.Files[name])}
	}
	s, err := New(files, a.Dir, shownFrom(moduleRoot(folder)))
	if err != nil {
		return nil, err
	}
	s.name = a.Name
	if s.digest != a.Digest || len(s.own) != len(files) {
		return nil, fmt.Errorf("its files have the digest %s, not %s", s.digest, a.Digest)
	}
	return s, nil
}
