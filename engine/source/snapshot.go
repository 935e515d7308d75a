package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing/fstest"

	"operetta.dev/schemas"
)

// A Snapshot is one version of an operator package: its files and their digest.
// It is immutable.
type Snapshot struct {
	name     string
	dir      string
	module   string
	language string
	// languages are the versions of CUE of other modules, by their folders.
	languages map[string]string
	digest    string
	origin    string
	// shown are the names under which messages show the files of overlays.
	shown map[string]string
	// prefix is the prefix with which messages show the names of files.
	prefix string
	// kinds are the types of custom kinds; see Loader.Kinds.
	kinds map[string]string
	// definitions are CustomResourceDefinitions; see Loader.Definitions.
	definitions []map[string]any
	// tested is the folder whose tests belong to the snapshot, or "".
	tested string
	// authored are the author's files; files also contains the engine's schemas.
	authored, files fstest.MapFS
}

// Name returns the package's name: the last element of its folder.
func (s *Snapshot) Name() string { return s.name }

// Dir returns the package's folder, slash-separated and relative to the root of FS.
func (s *Snapshot) Dir() string { return s.dir }

// LanguageOf returns the version of CUE that a file of FS is written in: that of its module.
func (s *Snapshot) LanguageOf(name string) string {
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if v := s.languages[at]; v != "" {
			return v
		}
	}
	return s.language
}

// Origin says where the files are from, such as "folder ./cue/shop", or is "". It tells two packages of
// one name apart.
func (s *Snapshot) Origin() string { return s.origin }

// Digest returns "sha256:" and the hexadecimal digest over the author's files.
func (s *Snapshot) Digest() string { return s.digest }

// Texts returns the files that the package consists of, by their paths in its module: those of its author, without the
// contract and the Kubernetes types.
func (s *Snapshot) Texts() map[string]string {
	out := map[string]string{}
	for name, f := range s.authored {
		out[name] = string(f.Data)
	}
	return out
}

// FS returns the files of the package's module that the package needs, with the
// contract in place. The caller must not change it.
func (s *Snapshot) FS() fs.FS { return s.files }

// Complete returns the same version of the package with the complete Kubernetes types
// instead of the light ones. They are for vetting; at run time they cost too much. It errors
// when the schemas cannot be read.
func (s *Snapshot) Complete() (*Snapshot, error) {
	files, err := withSchemas(s.authored, s.module, s.language, schemas.Full())
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", s.name, err)
	}
	out := *s
	out.files = files
	return &out, nil
}

// Kinds returns the types of custom kinds that the Loader was given. The caller must not change them.
func (s *Snapshot) Kinds() map[string]string { return s.kinds }

// Definitions returns the CustomResourceDefinitions that the Loader was given. The caller must not change them.
func (s *Snapshot) Definitions() []map[string]any { return s.definitions }

// WithoutTests returns the snapshot of the same files that has no tests.
func (s *Snapshot) WithoutTests() *Snapshot {
	out := *s
	out.tested, out.authored, out.files = "", maps.Clone(s.authored), maps.Clone(s.files)
	for name := range s.authored {
		if path.Dir(name) == s.tested && strings.HasSuffix(name, TestSuffix) {
			delete(out.authored, name)
			delete(out.files, name)
		}
	}
	out.digest = digestOf(out.authored)
	return &out
}

// Display returns the name under which messages show a file of FS.
func (s *Snapshot) Display(name string) string {
	if shown := s.shown[cleanPath(name)]; shown != "" {
		return shown
	}
	return path.Join(s.prefix, cleanPath(name))
}

// Folders returns the folders of FS that hold the package of an import path. There are none
// if the snapshot does not contain it, and several if a vendored package is spread over
// cue.mod/gen, pkg and usr.
func (s *Snapshot) Folders(importPath string) []string {
	candidates := foldersOf(s.module, importPath)
	if strings.HasPrefix(importPath, contractPrefix) && s.module != contractModule {
		// Always the engine's own package, even if the module vendors another one.
		candidates = foldersOf("", importPath)[1:2]
	}
	return slices.DeleteFunc(candidates, func(dir string) bool {
		names, err := cueFiles(s.files, dir, "")
		return err != nil || len(names) == 0
	})
}

// Files returns the CUE files of FS that may belong to the package in a folder, in the order in
// which the cue command unifies them: those of parent folders come first, because a package
// extends packages of the same name there.
func (s *Snapshot) Files(dir string) []string {
	var out []string
	for at := dir; ; at = path.Dir(at) {
		names, err := cueFiles(s.files, at, s.tested)
		if err != nil && at == dir {
			return nil
		}
		out = append(names, out...)
		if at == "." || slices.Contains(vendorRoots, at) || s.languages[at] != "" {
			return out
		}
	}
}

// digestOf returns the digest over names and contents, in the order of the names.
func digestOf(files fstest.MapFS) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		// The lengths distinguish "a"+"bc" from "ab"+"c".
		fmt.Fprintf(h, "%d %s %d ", len(name), name, len(files[name].Data))
		h.Write(files[name].Data)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// cleanPath returns the slash-separated path of a file within the module, without a leading
// slash, as fs.FS requires.
func cleanPath(name string) string {
	return path.Clean("./" + name)
}
