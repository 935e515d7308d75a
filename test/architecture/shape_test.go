package architecture

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// The limits of the size of functions, files and types.
const (
	maxFunction = 60
	maxFile     = 500
	maxMethods  = 40
)

// large are the types that have more methods, and how many they may have: they are phases over one state, see
// docs/design/0092-a-program-in-parts.md. A limit here may fall, and no type comes in.
var large = map[string]int{
	"engine/packages.Reconciler":    62,
	"engine/reconcile.state":        50,
	"engine/controller.Manager":     62,
	"engine/crd.generator":          57,
	"engine/cluster/memory.Cluster": 46,
}

func TestFunctionsAndFilesAreShort(t *testing.T) {
	for _, f := range source(t) {
		if f.test {
			continue
		}
		if n := f.set.File(f.syntax.Pos()).LineCount() - 1; n > maxFile {
			t.Errorf("%s has %d lines, more than %d", f.name, n, maxFile)
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.lines(fn) > maxFunction {
				t.Errorf("%s: %s has %d lines, more than %d", f.at(fn), fn.Name.Name, f.lines(fn), maxFunction)
			}
		}
	}
}

func TestTypesHaveFewMethods(t *testing.T) {
	methods := map[string]int{}
	for _, f := range source(t) {
		if f.test || !strings.HasPrefix(f.dir, "engine/") && !strings.HasPrefix(f.dir, "cmd/") {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[f.dir+"."+typeOf(fn.Recv)]++
			}
		}
	}
	for name, n := range methods {
		if limit := cmp.Or(large[name], maxMethods); n > limit {
			t.Errorf("%s has %d methods, more than %d: which of them share fields, and who calls them?", name, n, limit)
		}
	}
	for name := range large {
		if methods[name] <= maxMethods {
			t.Errorf("%s has %d methods: take it off the list", name, methods[name])
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	type pkg struct{ dir, name string }
	first, documented := map[pkg]string{}, map[pkg]bool{}
	for _, f := range source(t) {
		if f.test {
			continue
		}
		p := pkg{f.dir, f.syntax.Name.Name}
		first[p] = f.name
		documented[p] = documented[p] || f.syntax.Doc.Text() != ""
	}
	for p, name := range first {
		if !documented[p] {
			t.Errorf("%s: package %s has no comment that says what it is", name, p.name)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range source(t) {
		if f.test {
			continue
		}
		for _, d := range f.syntax.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s is exported and not documented", f.at(name), name.Name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration that have no comment, of
// their own or of their group.
func undocumented(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc.Text() == "" && ofExported(d.Recv) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil
		}
		var out []*ast.Ident
		for _, spec := range d.Specs {
			out = append(out, undocumentedIn(d, spec)...)
		}
		return out
	}
	return nil
}

func undocumentedIn(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var out []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc.Text() == "" && d.Doc.Text() == "" {
			out = append(out, s.Name)
		}
	case *ast.ValueSpec:
		if s.Doc.Text() != "" || s.Comment.Text() != "" || d.Doc.Text() != "" {
			return nil
		}
		for _, name := range s.Names {
			if name.IsExported() {
				out = append(out, name)
			}
		}
	}
	return out
}

// ofExported reports whether a receiver, if there is one, is of an exported type.
func ofExported(receiver *ast.FieldList) bool {
	return receiver == nil || ast.IsExported(typeOf(receiver))
}

// typeOf returns the name of the type of a receiver.
func typeOf(receiver *ast.FieldList) string {
	t := receiver.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	for _, f := range source(t) {
		// With testing/synctest, a sleep moves the clock of the test and takes no time.
		if !f.test || slices.Contains(f.imports(), "testing/synctest") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.SelectorExpr); ok && call.Sel.Name == "Sleep" {
				if x, ok := call.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s: wait for what is awaited, with a deadline", f.at(call))
				}
			}
			return true
		})
	}
}
