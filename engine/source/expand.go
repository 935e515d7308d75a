package source

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
)

// Expand returns the folders of operator packages that patterns name: a folder
// stands for itself, and "dir/..." for every operator package at or below dir.
// It errors when a folder does not exist, and when a "..." finds no package.
func Expand(patterns []string) ([]string, error) {
	var dirs []string
	for _, p := range patterns {
		found, err := expand(p)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, found...)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

func expand(pattern string) ([]string, error) {
	root, recursive := strings.CutSuffix(filepath.ToSlash(pattern), "...")
	if !recursive {
		info, err := os.Stat(pattern)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", pattern, err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("package %s: not a folder; name the folder that holds the package", pattern)
		}
		return []string{filepath.Clean(pattern)}, nil
	}
	dirs, err := packagesBelow(filepath.Clean(root))
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("no operator package below %s: a package embeds operator.#Controller at its root", filepath.Clean(root))
	}
	return dirs, nil
}

// packagesBelow returns the folders at or below root that hold an operator
// package.
func packagesBelow(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		base := d.Name()
		if name != root && (base == "cue.mod" || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return filepath.SkipDir
		}
		if embedsController(os.DirFS(name)) {
			dirs = append(dirs, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for packages below %s: %w", root, err)
	}
	return dirs, nil
}

// embedsController reports whether a file of the folder embeds the contract's
// #Controller at its root.
func embedsController(fsys fs.FS) bool {
	names, err := cueFiles(fsys, ".")
	if err != nil {
		return false
	}
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			continue
		}
		// A broken file still yields what could be parsed of it, and a package
		// with a broken file is still a package.
		if f, _ := parser.ParseFile(name, data); f != nil && fileEmbedsController(f) {
			return true
		}
	}
	return false
}

func fileEmbedsController(f *ast.File) bool {
	name := contractName(f)
	if name == "" {
		return false
	}
	for _, decl := range f.Decls {
		embed, ok := decl.(*ast.EmbedDecl)
		if !ok {
			continue
		}
		sel, ok := embed.Expr.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		x, ok := sel.X.(*ast.Ident)
		label, isIdent := sel.Sel.(*ast.Ident)
		if ok && isIdent && x.Name == name && label.Name == "#Controller" {
			return true
		}
	}
	return false
}

// contractName returns the name under which a file imports the contract, or ""
// when it does not.
func contractName(f *ast.File) string {
	for spec := range f.ImportSpecs() {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if imp, _, _ = strings.Cut(imp, "@"); imp != contractPrefix+"operator" {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return "operator"
	}
	return ""
}
