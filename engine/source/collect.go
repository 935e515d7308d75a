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

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/mod/modfile"
	"operetta.dev/schemas"
)

const (
	// contractModule is the module whose schemas the engine brings itself.
	contractModule = "operetta.dev"
	// contractPrefix is the import path below which they are.
	contractPrefix = contractModule + "/schemas/"
	moduleFile     = "cue.mod/module.cue"
)

// collector gathers the files that one package of a module needs.
type collector struct {
	fsys   fs.FS
	module string
	files  fstest.MapFS
	seen   map[string]bool
}

// collect gathers the files of the package in dir and of what it imports from its
// own module. It errors when the folder cannot be read or holds no CUE files.
//
// A file that does not parse is kept as it is, without following its imports:
// the compiler reports syntax errors better, and with all positions.
func collect(fsys fs.FS, dir string) (*collector, error) {
	c := &collector{fsys: fsys, files: fstest.MapFS{}, seen: map[string]bool{}}
	if err := c.readModule(); err != nil {
		return nil, err
	}
	if err := c.addPackage(clean(dir)); err != nil {
		return nil, err
	}
	if len(c.files) == 1 { // the module's declaration alone
		return nil, errors.New("no CUE files in this folder")
	}
	return c, c.addVendored()
}

// readModule reads the module's declaration. A folder outside any module is a
// module of its own, so that a plain folder of CUE files works.
func (c *collector) readModule() error {
	data, err := fs.ReadFile(c.fsys, moduleFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.module = "package.local"
		data = []byte("module: \"" + c.module + "@v0\"\nlanguage: version: \"v0.17.0\"\n")
	case err != nil:
		return fmt.Errorf("reading the module: %w", err)
	default:
		f, err := modfile.ParseNonStrict(data, moduleFile)
		if err != nil {
			return fmt.Errorf("reading the module: %w", err)
		}
		c.module = f.ModulePath()
	}
	c.files[moduleFile] = &fstest.MapFile{Data: data}
	return nil
}

// addPackage adds the CUE files of a folder and follows their imports.
func (c *collector) addPackage(dir string) error {
	if c.seen[dir] {
		return nil
	}
	c.seen[dir] = true
	names, err := cueFiles(c.fsys, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := fs.ReadFile(c.fsys, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		c.files[name] = &fstest.MapFile{Data: data}
		if err := c.follow(name, data); err != nil {
			return err
		}
	}
	return nil
}

// follow adds the packages of the same module that a file imports.
func (c *collector) follow(name string, data []byte) error {
	f, err := parser.ParseFile(name, data, parser.ImportsOnly)
	if err != nil {
		return nil // see collect
	}
	for spec := range f.ImportSpecs() {
		dir, ok := c.ownPackage(spec)
		if !ok {
			continue
		}
		if err := c.addPackage(dir); err != nil {
			return err
		}
	}
	return nil
}

// ownPackage returns the folder of an import that is in the same module.
func (c *collector) ownPackage(spec *ast.ImportSpec) (string, bool) {
	imp, err := strconv.Unquote(spec.Path.Value)
	if err != nil || strings.HasPrefix(imp, contractPrefix) {
		return "", false
	}
	imp, _, _ = strings.Cut(imp, ":")
	imp, _, _ = strings.Cut(imp, "@")
	rest, ok := strings.CutPrefix(imp, c.module+"/")
	return rest, ok
}

// addVendored adds what the module vendors below cue.mod.
func (c *collector) addVendored() error {
	for _, root := range []string{"cue.mod/pkg", "cue.mod/gen", "cue.mod/usr"} {
		err := fs.WalkDir(c.fsys, root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || path.Ext(name) != ".cue" || strings.HasPrefix(name, root+"/"+contractPrefix) {
				return err
			}
			data, err := fs.ReadFile(c.fsys, name)
			if err != nil {
				return err
			}
			c.files[name] = &fstest.MapFile{Data: data}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading %s: %w", root, err)
		}
	}
	return nil
}

// withContract returns the files together with the engine's schemas, which stand
// where the module expects them.
func (c *collector) withContract() (fstest.MapFS, error) {
	out := maps.Clone(c.files)
	prefix := "cue.mod/pkg/" + contractModule + "/"
	if c.module == contractModule {
		prefix = ""
	}
	err := fs.WalkDir(schemas.Light(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(schemas.Light(), name)
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

// cueFiles returns the files of a folder that belong to its package, sorted.
func cueFiles(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("reading the package: %w", err)
	}
	var names []string
	for _, e := range entries {
		n := e.Name()
		// The loader ignores tests, tools and hidden files as well.
		if path.Ext(n) != ".cue" || strings.HasSuffix(n, "_test.cue") || strings.HasSuffix(n, "_tool.cue") || n[0] == '.' || n[0] == '_' {
			continue
		}
		names = append(names, path.Join(dir, n))
	}
	slices.Sort(names)
	return names, nil
}
