package source

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	Dir    string `json:"dir"`
	Digest string `json:"digest"`
	// Shown stands before the names of files where they are shown.
	Shown string            `json:"shown,omitempty"`
	Files map[string]string `json:"files"`
}

// archiveFormat is the only format that there is so far.
const archiveFormat = 1

// maxArchive bounds an archive of a package, in bytes: text takes up to six times as much in JSON.
const maxArchive = 6*maxTotal + 1<<20

// archiveOf returns the archive of a snapshot of a folder.
func archiveOf(folder string, s *Snapshot) archive {
	a := archive{Format: archiveFormat, Folder: folder, Name: s.name, Dir: s.dir, Digest: s.digest, Shown: s.prefix, Files: map[string]string{}}
	for name, f := range s.own {
		a.Files[name] = string(f.Data)
	}
	return a
}

// readArchive returns the archive in some JSON.
func readArchive(data []byte) (archive, error) {
	var a archive
	if err := json.Unmarshal(data, &a); err != nil {
		return archive{}, fmt.Errorf("it is no archive: %w", err)
	}
	if a.Format != archiveFormat {
		return archive{}, fmt.Errorf("it is of format %d, and this version reads format %d", a.Format, archiveFormat)
	}
	return a, nil
}

// snapshot returns the snapshot in an archive. It errors when its files are not those that
// were put there.
func (a archive) snapshot() (*Snapshot, error) {
	files := fstest.MapFS{}
	for _, name := range slices.Sorted(maps.Keys(a.Files)) {
		if !fs.ValidPath(name) || name == "." {
			return nil, fmt.Errorf("%q is not the name of a file", name)
		}
		files[name] = &fstest.MapFile{Data: []byte(a.Files[name])}
	}
	s, err := New(files, a.Dir, nil)
	if err != nil {
		return nil, err
	}
	s.name = a.Name
	if s.digest != a.Digest || len(s.own) != len(files) {
		return nil, fmt.Errorf("its files have the digest %s, not %s", s.digest, a.Digest)
	}
	return s, nil
}

// decode returns the snapshot of a folder in an archive. It errors when it is of another
// folder, or its files are not those that were kept.
func decode(folder string, data []byte) (*Snapshot, error) {
	a, err := readArchive(data)
	if err != nil {
		return nil, err
	}
	if a.Folder != folder {
		return nil, fmt.Errorf("it is of the folder %s", a.Folder)
	}
	s, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	s.shownBelow(shownPrefix(moduleRoot(folder)))
	return s, nil
}

// Send writes a snapshot for another process to Receive.
func (s *Snapshot) Send(w io.Writer) error {
	data, err := json.Marshal(archiveOf("", s))
	if err != nil {
		return fmt.Errorf("sending package %s: %w", s.name, err)
	}
	frame := binary.BigEndian.AppendUint64(nil, uint64(len(data)))
	if _, err := w.Write(append(frame, data...)); err != nil {
		return fmt.Errorf("sending package %s: %w", s.name, err)
	}
	return nil
}

// Receive returns the snapshot that another process sends, with the same digest, and reads
// nothing behind it. It errors when there is less, or more than any snapshot has, and when its
// files are not those of its digest.
func Receive(r io.Reader) (*Snapshot, error) {
	var frame [8]byte
	if _, err := io.ReadFull(r, frame[:]); err != nil {
		return nil, fmt.Errorf("receiving a package: %w", err)
	}
	size := binary.BigEndian.Uint64(frame[:])
	if size > maxArchive {
		return nil, fmt.Errorf("receiving a package: it has %d bytes, and at most %d are read", size, maxArchive)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("receiving a package: %w", err)
	}
	a, err := readArchive(data)
	if err != nil {
		return nil, fmt.Errorf("receiving a package: %w", err)
	}
	s, err := a.snapshot()
	if err != nil {
		return nil, fmt.Errorf("receiving a package: %w", err)
	}
	s.shownBelow(a.Shown)
	return s, nil
}
