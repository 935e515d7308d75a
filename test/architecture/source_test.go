package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the folder of the repository.
const root = "../.."

// module is the path of the root module.
const module = "operetta.dev"

// A file is a Go file of the repository.
type file struct {
	// name is its path from the root of the repository, dir that of its folder.
	name, dir string
	test      bool
	syntax    *ast.File
	set       *token.FileSet
}

// imports returns the packages that the file imports.
func (f file) imports() []string {
	var out []string
	for _, spec := range f.syntax.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// lines returns how many lines a part of the file takes.
func (f file) lines(n ast.Node) int {
	return f.set.Position(n.End()).Line - f.set.Position(n.Pos()).Line + 1
}

// at returns where something is, for a person.
func (f file) at(n ast.Node) string {
	return f.name + ":" + strconv.Itoa(f.set.Position(n.Pos()).Line)
}

// files are the Go files of all modules of the repository.
var files = sync.OnceValues(func() ([]file, error) {
	var out []file
	err := walk(root, func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, file{name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), syntax: syntax, set: set})
		return nil
	})
	return out, err
})

// walk visits the files below a folder by their paths from it, but for those that are
// hidden, built or test data.
func walk(dir string, visit func(name string) error) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || name == "bin"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		return visit(name)
	})
}

// source returns the files, or ends the test.
func source(t *testing.T) []file {
	t.Helper()
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// walkAll visits every file below a folder with what it holds, test data too.
func walkAll(dir fs.FS, visit func(name string, content []byte)) error {
	return fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		visit(name, content)
		return nil
	})
}

// expression parses an expression, or ends the test.
func expression(t *testing.T, text string) ast.Expr {
	t.Helper()
	out, err := parser.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
