package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// typeMeta is the type that a Go type embeds if it is an object.
var typeMeta = ref{"k8s.io/apimachinery/pkg/apis/meta/v1", "TypeMeta"}

// parse reads the sources, in their order.
func parse(mods modules, sources []source) ([]*pkg, error) {
	fset := token.NewFileSet()
	imports := importer{}
	var pkgs []*pkg
	for _, s := range sources {
		p, err := parsePackage(mods, fset, imports, s)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", s.goPath, err)
		}
		pkgs = append(pkgs, p)
	}
	link(pkgs)
	return pkgs, nil
}

// parsePackage reads one package.
func parsePackage(mods modules, fset *token.FileSet, imports importer, s source) (*pkg, error) {
	mod, dir, err := mods.lookup(s.goPath)
	if err != nil {
		return nil, err
	}
	files, err := parseFiles(fset, dir)
	if err != nil {
		return nil, err
	}

	p := &pkg{
		source:  s,
		module:  mod.Path + " " + mod.Version,
		version: path.Base(s.dir),
		byName:  map[string]*decl{},
	}
	r := &reader{pkg: p, consts: imports.check(fset, s.goPath, files)}
	for _, f := range files {
		r.file(f)
	}
	p.group = r.group
	return p, nil
}

// parseFiles parses the files of a package that declare types, by name.
func parseFiles(fset *token.FileSet, dir string) ([]*ast.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the files: %w", err)
	}
	var files []*ast.File
	for _, entry := range entries {
		if entry.IsDir() || !handWritten(entry.Name()) {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, entry.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parsing: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

// handWritten reports whether a file is Go code that is neither a test nor generated.
func handWritten(name string) bool {
	return strings.HasSuffix(name, ".go") &&
		!strings.HasSuffix(name, "_test.go") &&
		!strings.HasPrefix(name, "zz_generated") &&
		!strings.HasSuffix(name, "_generated.go") &&
		!strings.HasSuffix(name, ".pb.go")
}

// An importer provides the type checker with the packages that were checked before. That is enough to
// compute constants.
type importer map[string]*types.Package

// Import implements types.Importer.
func (im importer) Import(path string) (*types.Package, error) {
	if p, ok := im[path]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("package %s is not read", path)
}

// check computes the constants of a package. It ignores the errors that missing imports cause.
func (im importer) check(fset *token.FileSet, goPath string, files []*ast.File) map[*ast.Ident]*types.Const {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: im, Error: func(error) {}, IgnoreFuncBodies: true}
	checked, _ := conf.Check(goPath, fset, files, info)
	im[goPath] = checked

	consts := map[*ast.Ident]*types.Const{}
	for id, obj := range info.Defs {
		if c, ok := obj.(*types.Const); ok && c.Val().Kind() != constant.Unknown {
			consts[id] = c
		}
	}
	return consts
}
