package source

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"testing/fstest"

	"operetta.dev/schemas"
)

// Modules has the modules that packages depend on.
type Modules interface {
	// Module returns the files of a version of a module: path has the major version, such as
	// example.com/lib@v0, and version is exact, such as v0.1.2. It ends in time, and it is safe for
	// concurrent use. It may fetch the module.
	Module(path, version string) (fs.FS, error)
}

// A Loader reads packages together with the modules that they depend on. With no Modules, it finds only
// what is vendored.
type Loader struct {
	Modules Modules
	// Overlays are folders of CUE files that are unified with each package that is read from a folder.
	Overlays []string
	// Kinds are the types of custom kinds as CUE, by "GROUP/VERSION/KIND": the complete Kubernetes types do not have them.
	// They make no other version of a package.
	Kinds map[string]string
	// Definitions are CustomResourceDefinitions of kinds that the tests of packages are to know.
	Definitions []map[string]any
}

// Folder returns a snapshot of the package in a folder. It errors when the folder has no package, or one that exceeds a limit.
func (l Loader) Folder(dir string) (*Snapshot, error) { return l.NewReader(dir).Read() }

// FolderWithTests is Folder for a package with its tests.
func (l Loader) FolderWithTests(dir string) (*Snapshot, error) {
	r := l.NewReader(dir)
	r.tests = true
	return r.Read()
}

// NewReader returns a Reader of a folder.
func (l Loader) NewReader(dir string) *Reader { return &Reader{dir: dir, loader: l} }

// Module returns a snapshot of the package in the folder dir of a module. name and origin are those of the
// snapshot. It errors like Folder.
func (l Loader) Module(name, origin, dir string, fsys fs.FS) (*Snapshot, error) {
	s, err := l.snapshot(fsys, dir, "", nil)
	if err != nil {
		return nil, err
	}
	s.name, s.origin = name, origin
	return s, nil
}

// Files is Module for a module that is given as the texts of its files. It also errors if a name is not that of a file within
// the module.
func (l Loader) Files(name, origin, dir string, files map[string]string) (*Snapshot, error) {
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
	return l.Module(name, origin, dir, fsys)
}

// snapshot returns a snapshot of the package in a folder of a module, with the tests of a folder if tested
// is not "", and overlays.
func (l Loader) snapshot(fsys fs.FS, dir, tested string, overlays []Overlay) (*Snapshot, error) {
	dir = cleanPath(dir)
	if !fs.ValidPath(dir) {
		return nil, &LimitError{fmt.Sprintf("%q", dir), "it is not a folder of the module"}
	}
	c, err := collect(fsys, l.Modules, dir, tested)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", dir, err)
	}
	shown, err := c.addOverlays(dir, overlays)
	if err != nil {
		return nil, err
	}
	all, err := withSchemas(c.files, c.module, c.language, schemas.Light())
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", dir, err)
	}
	return &Snapshot{
		dir:      dir,
		module:   c.module,
		language: c.language, languages: c.languages,
		digest: digestOf(c.files),
		shown:  shown,
		tested: tested,
		kinds:  l.Kinds, definitions: l.Definitions,
		files:    all,
		authored: c.files,
	}, nil
}
