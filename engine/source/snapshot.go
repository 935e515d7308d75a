package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"testing/fstest"
)

// A Snapshot is one version of an operator package: its files and their digest.
// It is immutable.
type Snapshot struct {
	name    string
	dir     string
	digest  string
	display func(string) string
	files   fstest.MapFS
}

// Name returns the package's name: the last element of its folder.
func (s *Snapshot) Name() string { return s.name }

// Dir returns the package's folder, slash-separated and relative to the root of FS.
func (s *Snapshot) Dir() string { return s.dir }

// Digest returns "sha256:" and the hexadecimal digest over the author's files.
func (s *Snapshot) Digest() string { return s.digest }

// FS returns the files of the package's module that the package needs, with the
// contract in place. The caller must not change it.
func (s *Snapshot) FS() fs.FS { return s.files }

// Display returns the name under which a file of FS is shown to a person.
func (s *Snapshot) Display(name string) string { return s.display(name) }

// digestOf returns the digest over names and contents, in the order of the names.
func digestOf(files fstest.MapFS) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		// Lengths keep "a"+"bc" apart from "ab"+"c".
		fmt.Fprintf(h, "%d %s %d ", len(name), name, len(files[name].Data))
		h.Write(files[name].Data)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// clean returns the slash-separated path of a file within the module, without a
// leading slash, as fs.FS wants it.
func clean(name string) string {
	return path.Clean("./" + name)
}
