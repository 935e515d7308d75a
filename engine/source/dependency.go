package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/mod/modfile"
	"golang.org/x/mod/semver"
)

// vendored is the folder in which a snapshot has the packages of other modules.
const vendored = "cue.mod/pkg"

// A DependencyError is the error of a module that a package depends on and that cannot be used.
type DependencyError struct {
	// File and Line are the place in the declaration of the module that names it.
	File string
	Line int
	// Module is the module with its version, such as example.com/lib@v0.1.2.
	Module string
	// Err says why.
	Err error
}

// Error returns what is wrong, without the place.
func (e *DependencyError) Error() string { return fmt.Sprintf("module %s: %v", e.Module, e.Err) }

// Unwrap returns why.
func (e *DependencyError) Unwrap() error { return e.Err }

// A dependency is a module that the declaration of a module names.
type dependency struct {
	// path has the major version, base has not.
	path, base, version string
	line                int
	// preferred is true if imports without a major version mean this one.
	preferred bool
	// replaced is what is to be used instead, or "".
	replaced string
	// files are those of the module, once it was looked into.
	files fs.FS
	// used is true if the package imports a package of it.
	used bool
}

func (d *dependency) String() string { return d.base + "@" + d.version }

func (d *dependency) errorf(format string, args ...any) error {
	return &DependencyError{File: moduleFile, Line: d.line, Module: d.String(), Err: fmt.Errorf(format, args...)}
}

// dependencies returns the modules that a declaration names, sorted. The contract is none of them: it is part
// of the engine, whatever a registry has under its name.
func dependencies(f *modfile.File, data []byte) []*dependency {
	lines := dependencyLines(data)
	var out []*dependency
	for modulePath, dep := range f.Deps {
		base := ast.ParseImportPath(modulePath).Path
		if base == contractModule || strings.HasPrefix(base, contractModule+"/") {
			continue
		}
		line := lines[modulePath]
		out = append(out, &dependency{path: modulePath, base: base, version: dep.Version, line: line, preferred: dep.Default, replaced: dep.ReplaceWith})
	}
	slices.SortFunc(out, func(a, b *dependency) int { return strings.Compare(a.path, b.path) })
	return out
}

// dependencyLines returns the lines of the labels of the dependencies in a declaration.
func dependencyLines(data []byte) map[string]int {
	out := map[string]int{}
	f, err := parser.ParseFile(moduleFile, data)
	if err != nil {
		return out
	}
	ast.Walk(f, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		if label, ok := field.Label.(*ast.BasicLit); ok {
			if name, err := strconv.Unquote(label.Value); err == nil && out[name] == 0 {
				out[name] = label.Pos().Line()
			}
		}
		return true
	}, nil)
	return out
}

// foldersOf returns the folders with the package of an import path: in the module, vendored, or else in a
// module that it depends on. There are none if it is in none of them: the compiler reports that better.
func (c *collector) foldersOf(importPath string) ([]string, error) {
	dirs := foldersOf(c.module, importPath)
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { _, err := fs.Stat(c.fsys, dir); return err != nil })
	if len(dirs) > 0 || c.modules == nil {
		return dirs, nil
	}
	d, err := c.providerOf(importPath)
	if d == nil || err != nil {
		return nil, err
	}
	return []string{path.Join(vendored, ast.ParseImportPath(importPath).Path)}, c.use(d)
}

// providerOf returns the dependency that has the package of an import path, or nil. As for the cue command,
// it has to be the only one.
func (c *collector) providerOf(importPath string) (*dependency, error) {
	imp := ast.ParseImportPath(importPath)
	var found *dependency
	for _, d := range c.dependencies {
		rest, below := strings.CutPrefix(imp.Path+"/", d.base+"/")
		if !below || !c.meant(d, imp.Version) {
			continue
		}
		if err := c.open(d); err != nil {
			return nil, err
		}
		names, err := cueFiles(d.files, cleanPath(rest), "")
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
			continue
		}
		if err != nil {
			return nil, d.errorf("%w", err)
		}
		if found != nil {
			return nil, d.errorf("it has the package %s, and so has module %s", imp.Path, found)
		}
		found = d
	}
	return found, nil
}

// meant reports whether an import of a major version, or of none, means a dependency.
func (c *collector) meant(d *dependency, major string) bool {
	if major != "" {
		return major == semver.Major(d.version)
	}
	return d.preferred || !slices.ContainsFunc(c.dependencies, func(other *dependency) bool { return other != d && other.base == d.base })
}

// open looks into a dependency.
func (c *collector) open(d *dependency) error {
	if d.files != nil {
		return nil
	}
	if d.replaced != "" {
		return d.errorf("it is replaced with %s, and operetta uses only modules of registries; vendor it in %s", d.replaced, vendored)
	}
	files, err := c.modules.Module(d.path, d.version)
	if err != nil {
		return d.errorf("%w", err)
	}
	d.files = files
	return nil
}

// use makes the packages of a dependency those of a folder of the module, where the snapshot has them.
func (c *collector) use(d *dependency) error {
	if d.used {
		return nil
	}
	for _, other := range c.dependencies {
		switch {
		case !other.used:
		case other.base == d.base:
			return d.errorf("module %s is used as well, and a package uses only one major version of a module", other)
		case strings.HasPrefix(other.base+"/", d.base+"/") || strings.HasPrefix(d.base+"/", other.base+"/"):
			return d.errorf("module %s is used as well, and a package uses no modules of which one is below the other", other)
		}
	}
	for _, root := range vendorRoots {
		if dir := path.Join(root, d.base); exists(c.fsys, dir) {
			return d.errorf("it is a dependency, and %s has packages of it; remove one of them", dir)
		}
	}
	if err := c.checkSelected(d); err != nil {
		return err
	}
	d.used = true
	c.fsys.mounts[path.Join(vendored, d.base)] = d.files
	return nil
}

func exists(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}

// checkSelected errors if a dependency needs a later version of a module than the one that is used.
func (c *collector) checkSelected(d *dependency) error {
	data, err := readLimited(d.files, moduleFile, maxModuleFile)
	if err != nil {
		return d.errorf("%w", err)
	}
	f, err := modfile.ParseNonStrict(data, moduleFile)
	if err != nil {
		return d.errorf("%w", err)
	}
	if found := ast.ParseImportPath(f.QualifiedModule()).Path; found != d.base {
		return d.errorf("its declaration calls it %s", found)
	}
	for _, other := range c.dependencies {
		if need := f.Deps[other.path]; need != nil && semver.Compare(other.version, need.Version) < 0 {
			return other.errorf("module %s needs at least %s; cue mod tidy writes that", d, need.Version)
		}
	}
	return nil
}

// addModuleFile adds the declaration of the module whose root a folder is, and reports whether it is one:
// packages do not extend those above their module.
func (c *collector) addModuleFile(dir string) (bool, error) {
	if !slices.ContainsFunc(vendorRoots, func(root string) bool { return strings.HasPrefix(dir, root+"/") }) {
		return false, nil
	}
	name := path.Join(dir, moduleFile)
	if c.files[name] != nil {
		return true, nil
	}
	if !exists(c.fsys, name) {
		return false, nil
	}
	data, err := readLimited(c.fsys, name, maxModuleFile)
	if err != nil {
		return false, fmt.Errorf("reading the package: %w", withFileName(name, err))
	}
	f, err := modfile.ParseNonStrict(data, name)
	if err != nil {
		return false, fmt.Errorf("reading the package: %w", err)
	}
	c.languages[dir] = languageOf(f)
	return true, c.addFile(name, data)
}

// readLimited reads a regular file of at most limit bytes.
func readLimited(fsys fs.FS, name string, limit int) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(name, info); err != nil {
		return nil, err
	}
	if info.Size() > int64(limit) {
		return nil, tooLargeError(name, limit)
	}
	return fs.ReadFile(fsys, name)
}

// A mounted file system is that of a module with other modules in some of its folders.
type mounted struct {
	fs.FS

	mounts map[string]fs.FS
}

// at returns the file system that has a file, and its name there.
func (m *mounted) at(name string) (fs.FS, string) {
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if fsys := m.mounts[dir]; fsys != nil {
			return fsys, cleanPath(strings.TrimPrefix(name, dir))
		}
	}
	return m.FS, name
}

// Open opens a file or folder.
func (m *mounted) Open(name string) (fs.File, error) {
	fsys, name := m.at(name)
	return fsys.Open(name)
}

// Stat describes a file or folder.
func (m *mounted) Stat(name string) (fs.FileInfo, error) {
	fsys, name := m.at(name)
	return fs.Stat(fsys, name)
}

// ReadDir returns the entries of a folder.
func (m *mounted) ReadDir(name string) ([]fs.DirEntry, error) {
	fsys, name := m.at(name)
	return fs.ReadDir(fsys, name)
}

// ReadFile returns the content of a file.
func (m *mounted) ReadFile(name string) ([]byte, error) {
	fsys, inner := m.at(name)
	if inner == name {
		return fs.ReadFile(fsys, name)
	}
	return readLimited(fsys, inner, maxFileSize)
}
