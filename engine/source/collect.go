package source

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"
	"unicode/utf8"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/mod/modfile"
)

const (
	// contractModule is the module whose schemas are part of the engine.
	contractModule = "operetta.dev"
	// contractPrefix is the prefix of their import paths.
	contractPrefix = contractModule + "/schemas/"
	moduleFile     = "cue.mod/module.cue"
	// defaultLanguage is the CUE version of a folder outside any module.
	defaultLanguage = "v0.17.0"
)

// vendorRoots are the folders of vendored packages in a module. One package may be spread over
// all of them.
var vendorRoots = []string{"cue.mod/gen", "cue.mod/pkg", "cue.mod/usr"}

// ErrNoFiles is the error of a folder without CUE files.
var ErrNoFiles = errors.New("no CUE files in this folder")

// collector gathers the files that one package of a module needs.
type collector struct {
	fsys     *mounted
	modules  Modules
	module   string
	language string
	files    fstest.MapFS
	// dependencies are the modules that the module depends on.
	dependencies []*dependency
	// languages are the versions of CUE of the other modules that are used, by their folders.
	languages map[string]string
	// tested is the folder whose tests are read, too, or "".
	tested string
	seen   map[string]bool
	// folders are the CUE files of the folders that were read.
	folders map[string][]candidate
	// size is the size of files in bytes, read the size of all files that were read to find
	// them, and imports the number of imports that were followed.
	size, read, imports int
}

// collect gathers the files of the package in dir and of all packages that it imports. It errors
// when the folder cannot be read or holds no CUE files.
//
// It does not report a file that does not parse, whose imports it does not follow, nor an import
// that does not exist: the compiler reports both better, and with positions.
//
// tested is the folder whose tests are gathered, too, or "".
func collect(fsys fs.FS, modules Modules, dir, tested string) (*collector, error) {
	c := &collector{fsys: &mounted{FS: fsys, mounts: map[string]fs.FS{}}, modules: modules, tested: tested, files: fstest.MapFS{}, languages: map[string]string{}, seen: map[string]bool{}, folders: map[string][]candidate{}}
	if err := c.readModule(); err != nil {
		return nil, err
	}
	found, err := c.readFolder(dir)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNoFiles
	}
	return c, c.addPackage(dir)
}

// readModule reads the module's declaration. A folder outside any module counts as a module, so
// that a plain folder of CUE files works.
func (c *collector) readModule() error {
	data, err := fs.ReadFile(c.fsys, moduleFile)
	if err == nil && len(data) > maxModuleFile {
		err = tooLargeError(moduleFile, maxModuleFile)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.module, c.language = "package.local", defaultLanguage
		return nil
	case err != nil:
		return fmt.Errorf("reading the module: %w", err)
	}
	f, err := modfile.ParseNonStrict(data, moduleFile)
	if err != nil {
		return fmt.Errorf("reading the module: %w", err)
	}
	c.module, c.language = ast.ParseImportPath(f.QualifiedModule()).Path, languageOf(f)
	c.dependencies = dependencies(f, data)
	return c.addFile(moduleFile, data)
}

// languageOf returns the version of CUE that a module is written in.
func languageOf(f *modfile.File) string {
	if f.Language == nil || f.Language.Version == "" {
		return defaultLanguage
	}
	return f.Language.Version
}

// addFile adds a file. It errors with a LimitError when the file exceeds a limit.
func (c *collector) addFile(name string, data []byte) error {
	if !utf8.Valid(data) {
		return &LimitError{name, "it is not UTF-8 text"}
	}
	if _, known := c.files[name]; !known {
		c.size += len(data)
	}
	c.files[name] = &fstest.MapFile{Data: data}
	switch {
	case c.size > maxTotalSize:
		return &LimitError{name, fmt.Sprintf("with it, the files of the package have more than %d bytes", maxTotalSize)}
	case len(c.files) > maxFiles:
		return &LimitError{name, fmt.Sprintf("with it, the package has more than %d files", maxFiles)}
	}
	return nil
}

// addPackage adds the CUE files of a folder, and those of its parent folders that belong to the
// same package, and follows their imports.
func (c *collector) addPackage(dir string) error {
	if c.seen[dir] {
		return nil
	}
	c.seen[dir] = true
	packages := map[string]bool{}
	if err := c.addFolder(dir, func(name string) bool { packages[name] = true; return true }); err != nil {
		return err
	}
	for at := dir; at != "." && !slices.Contains(vendorRoots, at); {
		if end, err := c.addModuleFile(at); end || err != nil {
			return err
		}
		at = path.Dir(at)
		if err := c.addFolder(at, func(name string) bool { return packages[name] }); err != nil {
			return err
		}
	}
	return nil
}

// addFolder adds the files of a folder for whose package name wanted is true.
func (c *collector) addFolder(dir string, wanted func(packageName string) bool) error {
	candidates, err := c.readFolder(dir)
	if err != nil {
		return err
	}
	for _, f := range candidates {
		if !wanted(f.parsed.PackageName()) {
			continue
		}
		if err := c.addFile(f.name, f.data); err != nil {
			return fmt.Errorf("reading the package: %w", err)
		}
		if f.parseFailed {
			continue // see collect
		}
		if err := c.addImports(f.name, f.parsed); err != nil {
			return err
		}
	}
	return nil
}

// A candidate is a file that may belong to the package.
type candidate struct {
	name        string
	data        []byte
	parsed      *ast.File
	parseFailed bool
}

// readFolder returns the CUE files of a folder. It reads each folder only once: parent folders
// are needed again for every package below them.
func (c *collector) readFolder(dir string) ([]candidate, error) {
	if known, ok := c.folders[dir]; ok {
		return known, nil
	}
	names, err := cueFiles(c.fsys, dir, c.tested)
	if err != nil {
		return nil, err
	}
	var out []candidate
	for _, name := range names {
		data, err := fs.ReadFile(c.fsys, name)
		if err != nil {
			return nil, fmt.Errorf("reading the package: %w", withFileName(name, err))
		}
		if c.read += len(data); c.read > maxReadSize {
			return nil, &LimitError{name, fmt.Sprintf("with it, the folders of the package have more than %d bytes of CUE", maxReadSize)}
		}
		f, err := parser.ParseFile(name, data, parser.ImportsOnly)
		if f != nil {
			out = append(out, candidate{name, data, f, err != nil})
		}
	}
	c.folders[dir] = out
	return out, nil
}

// addImports adds the packages that a file imports.
func (c *collector) addImports(file string, f *ast.File) error {
	for spec := range f.ImportSpecs() {
		if c.imports++; c.imports > maxImports {
			return &LimitError{file, fmt.Sprintf("with it, the package has more than %d imports", maxImports)}
		}
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if strings.HasPrefix(imp, contractPrefix) {
			continue // the schemas are part of the engine
		}
		dirs, err := c.foldersOf(imp)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			if err := c.addPackage(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// foldersOf returns the folders in which a module may hold the package of an import path: its
// own folder, or else the folders of vendored packages.
func foldersOf(module, importPath string) []string {
	p := ast.ParseImportPath(importPath).Path
	if p == module {
		return []string{"."}
	}
	if rest, ok := strings.CutPrefix(p, module+"/"); ok {
		return []string{path.Clean(rest)}
	}
	var out []string
	for _, root := range vendorRoots {
		out = append(out, path.Join(root, p))
	}
	return out
}

// withSchemas returns the files together with the engine's schemas, light or complete, in the
// folder where the module expects them.
func withSchemas(files fstest.MapFS, module, language string, tree fs.FS) (fstest.MapFS, error) {
	out := maps.Clone(files)
	if out[moduleFile] == nil {
		out[moduleFile] = &fstest.MapFile{Data: fmt.Appendf(nil, "module: %q\nlanguage: version: %q\n", module+"@v0", language)}
	}
	prefix := "cue.mod/pkg/" + contractModule + "/"
	if module == contractModule {
		prefix = ""
	}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		out[prefix+name] = &fstest.MapFile{Data: data}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the embedded schemas: %w", err)
	}
	return out, nil
}

// withFileName returns an error with the name of its file. A LimitError has the name already.
func withFileName(name string, err error) error {
	if _, ok := errors.AsType[*LimitError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// TestSuffix is how the names of files with tests end.
const TestSuffix = "_test.cue"

// cueFiles returns the files of a folder that may belong to a package, sorted: its tests only if it is the
// tested folder.
func cueFiles(fsys fs.FS, dir, tested string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("reading the package: %w", err)
	}
	var names []string
	for _, e := range entries {
		n := e.Name()
		// The cue command ignores tests, tools and hidden files too.
		if e.IsDir() || path.Ext(n) != ".cue" || strings.HasSuffix(n, TestSuffix) && dir != tested || strings.HasSuffix(n, "_tool.cue") || n[0] == '.' || n[0] == '_' {
			continue
		}
		names = append(names, path.Join(dir, n))
	}
	slices.Sort(names)
	return names, nil
}
