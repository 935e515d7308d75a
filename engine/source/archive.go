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

// archive is a snapshot as one file: the author's files, without the engine's schemas.
type archive struct {
	// Format is archiveFormat.
	Format int `json:"format"`
	// Folder is the absolute path of the folder that it was read from.
	Folder string `json:"folder"`
	Name   string `json:"name"`
	// Dir is the package's folder within the module.
	Dir    string `json:"dir"`
	Digest string `json:"digest"`
	// DisplayPrefix is the prefix with which messages show the names of files.
	DisplayPrefix string `json:"shown,omitempty"`
	// Overlays are the names under which messages show the files of overlays.
	Overlays map[string]string `json:"overlays,omitempty"`
	// Kinds are the types of custom kinds.
	Kinds map[string]string `json:"kinds,omitempty"`
	// Definitions are CustomResourceDefinitions for tests.
	Definitions []map[string]any `json:"definitions,omitempty"`
	// Tested is the folder whose tests are among the files, or "".
	Tested string            `json:"tested,omitempty"`
	Files  map[string]string `json:"files"`
}

// archiveFormat is the only format so far.
const archiveFormat = 1

// maxArchive bounds an archive of a package, in bytes: JSON can make text six times as long.
const maxArchive = 6*maxTotalSize + 1<<20

// archiveOf returns the archive of a snapshot of a folder.
func archiveOf(folder string, s *Snapshot) archive {
	return archive{Format: archiveFormat, Folder: folder, Name: s.name, Dir: s.dir, Digest: s.digest, DisplayPrefix: s.prefix, Overlays: s.shown, Kinds: s.kinds, Definitions: s.definitions, Tested: s.tested, Files: s.Texts()}
}

// readArchive decodes an archive. It errors when the data is not an archive of this format.
func readArchive(data []byte) (archive, error) {
	var a archive
	if err := json.Unmarshal(data, &a); err != nil {
		return archive{}, fmt.Errorf("it is not an archive: %w", err)
	}
	if a.Format != archiveFormat {
		return archive{}, fmt.Errorf("it has format %d, and this version reads format %d", a.Format, archiveFormat)
	}
	return a, nil
}

// snapshot returns the snapshot in an archive. It errors when the files do not match the digest.
func (a archive) snapshot() (*Snapshot, error) {
	files := fstest.MapFS{}
	for _, name := range slices.Sorted(maps.Keys(a.Files)) {
		if !fs.ValidPath(name) || name == "." {
			return nil, fmt.Errorf("%q is not the name of a file", name)
		}
		files[name] = &fstest.MapFile{Data: []byte(a.Files[name])}
	}
	s, err := Loader{}.snapshot(files, a.Dir, a.Tested, nil)
	if err != nil {
		return nil, err
	}
	s.name, s.shown, s.kinds, s.definitions = a.Name, a.Overlays, a.Kinds, a.Definitions
	if s.digest != a.Digest || len(s.authored) != len(files) {
		return nil, fmt.Errorf("its files have the digest %s, not %s", s.digest, a.Digest)
	}
	return s, nil
}

// decodeSnapshot returns the snapshot of a folder in an archive. It errors when the archive is
// of another folder, or its files do not match its digest.
func decodeSnapshot(folder string, data []byte) (*Snapshot, error) {
	a, err := readArchive(data)
	if err != nil {
		return nil, err
	}
	if a.Folder != folder {
		return nil, fmt.Errorf("it belongs to the folder %s", a.Folder)
	}
	s, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	s.prefix = displayPrefix(moduleRoot(folder))
	return s, nil
}

// Send writes a snapshot to another process, which calls Receive. It errors when it cannot be
// written.
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

// Receive returns the snapshot that another process sends, with the same digest. It reads nothing
// after the snapshot. It errors when the snapshot is incomplete or larger than any snapshot can
// be, and when its files do not match its digest.
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
	s.prefix = a.DisplayPrefix
	return s, nil
}
