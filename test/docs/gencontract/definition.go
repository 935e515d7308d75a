package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

// A definition is one definition of a CUE package.
type definition struct {
	name string
	doc  string
	// expr is what it stands for, if it is no struct.
	expr   string
	fields []field
	// embeds are the definitions that it embeds.
	embeds []string
}

// A field is one field of a definition. Fields of structs within it follow it, with
// their whole path.
type field struct {
	path string
	doc  string
	expr string
	// marker is "!", "?" or "".
	marker string
	// uses are the definitions that the type refers to.
	uses []string
}

// private reports whether a definition is the package's own business.
func (d definition) private() bool { return strings.HasPrefix(d.name, "_") }

// readPackage returns the doc comment of a CUE package and its definitions, in the
// order of the files' names and of the text.
func readPackage(dir string) (doc string, out []definition, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.cue"))
	if err != nil {
		return "", nil, err
	}
	var faults []error
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			return "", nil, err
		}
		fileDoc, found, err := readFile(filepath.Base(dir)+"/"+filepath.Base(name), string(source))
		faults = append(faults, err)
		if fileDoc != "" {
			doc = fileDoc
		}
		out = append(out, found...)
	}
	return doc, out, errors.Join(faults...)
}

// readFile returns the definitions of one file.
func readFile(name, source string) (doc string, out []definition, err error) {
	f, err := parser.ParseFile(name, source, parser.ParseComments)
	if err != nil {
		return "", nil, err
	}
	var faults []error
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.Package:
			doc = docOf(d)
		case *ast.Field:
			label := labelOf(d)
			if !strings.HasPrefix(label, "#") && !strings.HasPrefix(label, "_#") {
				continue
			}
			one, err := readDefinition(label, d)
			faults = append(faults, err)
			out = append(out, one)
		}
	}
	return doc, out, errors.Join(faults...)
}

func readDefinition(name string, f *ast.Field) (definition, error) {
	d := definition{name: name, doc: docOf(f)}
	if d.doc == "" && !d.private() {
		return d, undocumented(f, name)
	}
	s, ok := braced(f.Value)
	if !ok {
		d.expr = text(f.Value)
		return d, nil
	}
	for _, e := range s.Elts {
		if embed, ok := e.(*ast.EmbedDecl); ok {
			d.embeds = append(d.embeds, definitionsIn(embed.Expr)...)
		}
	}
	var err error
	d.fields, err = readFields(name, "", s)
	if d.private() {
		return d, nil // what its users see of it is described in page.go
	}
	return d, err
}

// readFields returns the fields of a struct, without hidden ones and definitions.
func readFields(definition, prefix string, s *ast.StructLit) ([]field, error) {
	var out []field
	var faults []error
	for _, e := range s.Elts {
		f, ok := e.(*ast.Field)
		if !ok {
			continue
		}
		label := labelOf(f)
		if label == "" || strings.HasPrefix(label, "_") || strings.HasPrefix(label, "#") {
			continue
		}
		one := field{path: prefix + label, doc: docOf(f), uses: definitionsIn(f.Value), marker: marker(f.Constraint)}
		if one.doc == "" {
			faults = append(faults, undocumented(f, definition+"."+one.path))
		}
		inner, nested := braced(f.Value)
		if nested && !hasFields(inner) {
			nested = false
		}
		if !nested {
			one.expr = text(f.Value)
		}
		out = append(out, one)
		if nested {
			below, err := readFields(definition, one.path+".", inner)
			out = append(out, below...)
			faults = append(faults, err)
		}
	}
	return out, errors.Join(faults...)
}

func undocumented(n ast.Node, what string) error {
	return fmt.Errorf("%s: %s has no doc comment", n.Pos(), what)
}

// braced returns a struct that is written with braces: `a: b: c` has none.
func braced(e ast.Expr) (*ast.StructLit, bool) {
	s, ok := e.(*ast.StructLit)
	return s, ok && s.Lbrace.IsValid()
}

func hasFields(s *ast.StructLit) bool {
	return slices.ContainsFunc(s.Elts, func(d ast.Decl) bool {
		f, ok := d.(*ast.Field)
		return ok && labelOf(f) != ""
	})
}

// labelOf returns the name of a field, or "" if it has a pattern.
func labelOf(f *ast.Field) string {
	name, _, err := ast.LabelName(f.Label)
	if err != nil {
		return ""
	}
	return name
}

func marker(t token.Token) string {
	switch t {
	case token.NOT:
		return "!"
	case token.OPTION:
		return "?"
	}
	return ""
}

// docOf returns the comment above a node.
func docOf(n ast.Node) string {
	for _, g := range ast.Comments(n) {
		if g.Doc {
			return strings.TrimSpace(g.Text())
		}
	}
	return ""
}

// text returns an expression on one line, without comments. What the author wrote
// without braces has none.
func text(e ast.Expr) string {
	var n ast.Node = e
	if s, ok := e.(*ast.StructLit); ok && !s.Lbrace.IsValid() && len(s.Elts) == 1 {
		n = s.Elts[0]
	}
	source, err := format.Node(n)
	if err != nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// definitionsIn returns the definitions that an expression refers to.
func definitionsIn(e ast.Expr) []string {
	var out []string
	ast.Walk(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if ok && strings.Contains(id.Name, "#") && !slices.Contains(out, id.Name) {
			out = append(out, id.Name)
		}
		return true
	}, nil)
	return out
}
