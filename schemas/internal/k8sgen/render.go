package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"
)

const (
	// cueRoot is the prefix of the import paths of the generated packages.
	cueRoot = "operetta.dev/schemas/k8s/"
	// fileName is the name of the only file of each generated package, in both forms.
	fileName = "types.cue"
)

// A form is one of the two ways to print a package.
type form struct {
	light bool
}

var (
	// fullForm has every field, documented.
	fullForm = form{}
	// lightForm has the same definitions, but those of structs are open and have only apiVersion and
	// kind.
	lightForm = form{light: true}
)

// renderAll prints every package, by the path of its file under schemas/k8s.
func renderAll(pkgs []*pkg, f form) (map[string][]byte, error) {
	l := linker{}
	for _, p := range pkgs {
		l[p.goPath] = p
	}
	files := map[string][]byte{}
	for _, p := range pkgs {
		text, err := (&printer{form: f, pkg: p, linker: l, imports: map[string]string{}}).file()
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", p.goPath, err)
		}
		files[path.Join(p.dir, fileName)] = text
	}
	return files, nil
}

// A printer prints one package in one form. It leaves the layout of the CUE to the formatter.
type printer struct {
	form
	pkg     *pkg
	linker  linker
	imports map[string]string // import path to alias, of the packages that were referred to
	body    strings.Builder
	errs    []error
}

// file returns the formatted file.
func (p *printer) file() ([]byte, error) {
	for _, d := range p.pkg.decls {
		p.decl(d)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	text, err := format.Source([]byte(p.head() + p.body.String()))
	if err != nil {
		return nil, fmt.Errorf("formatting: %w", err)
	}
	return text, nil
}

// head returns the text before the definitions.
func (p *printer) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s from %s; DO NOT EDIT.\n\n", mark, p.pkg.module)
	b.WriteString(p.pkg.doc(p.light))
	fmt.Fprintf(&b, "package %s\n", p.pkg.name())
	if len(p.imports) > 0 {
		b.WriteString("\nimport (\n")
		for _, importPath := range sortedKeys(p.imports) {
			alias := p.imports[importPath]
			if alias == path.Base(importPath) {
				alias = ""
			}
			fmt.Fprintf(&b, "%s %q\n", alias, importPath)
		}
		b.WriteString(")\n")
	}
	return b.String()
}

// doc returns the package comment.
func (p *pkg) doc(light bool) string {
	what := "the types of the Kubernetes API " + p.apiVersion()
	if p.support {
		what = "what the types of the Kubernetes APIs share from " + p.goPath
	}
	if light {
		return fmt.Sprintf("// Package %s holds, without their fields, %s.\n", p.name(), what)
	}
	return fmt.Sprintf("// Package %s holds %s.\n", p.name(), what)
}

// decl prints one definition.
func (p *printer) decl(d *decl) {
	p.body.WriteString("\n")
	p.comment(d.doc)
	fmt.Fprintf(&p.body, "#%s: ", d.name)
	switch d.shape {
	case structShape, objectShape:
		p.structure(d)
	case typeShape:
		p.body.WriteString(p.lightened(d.typ))
	case enumShape, constShape:
		p.body.WriteString(strings.Join(d.values, " | "))
	}
	p.body.WriteString("\n")
}

// structure prints the value of a struct definition.
func (p *printer) structure(d *decl) {
	if d.typ.expr != "" {
		p.body.WriteString(d.typ.expr)
		return
	}
	p.body.WriteString("{\n")
	if d.shape == objectShape {
		fmt.Fprintf(&p.body, "apiVersion: %q\nkind: %q\n", p.pkg.apiVersion(), d.name)
	}
	if p.light {
		p.body.WriteString("...\n}")
		return
	}
	for i, f := range d.fields {
		if i > 0 || d.shape == objectShape {
			p.body.WriteString("\n")
		}
		p.comment(f.doc)
		p.body.WriteString(p.field(d, f))
	}
	p.body.WriteString("}")
}

// comment prints a doc comment. The light form has none.
func (p *printer) comment(lines []string) {
	if p.light {
		return
	}
	for _, line := range lines {
		p.body.WriteString(strings.TrimRight("// "+line, " ") + "\n")
	}
}

// lightened prints the value of a definition that is not a struct.
func (p *printer) lightened(t typ) string {
	switch {
	case p.light && t.kind == mapKind:
		return "{...}"
	case p.light && t.kind == listKind:
		return "[...]"
	}
	return p.expr("", t)
}

// expr prints a type. at is its path, for an error if it has no CUE form.
func (p *printer) expr(at string, t typ) string {
	switch t.kind {
	case exprKind:
		return t.expr
	case listKind:
		return "[..." + p.operand(at, *t.elem) + "]"
	case mapKind:
		return "{[string]: " + p.expr(at, *t.elem) + "}"
	case namedKind:
		return p.name(at, t.ref)
	default: // unknownKind
		p.errs = append(p.errs, fmt.Errorf("%s: a Go type of form %s has no CUE", at, t.expr))
		return "_"
	}
}

// operand prints a type, in parentheses if an operator would bind differently.
func (p *printer) operand(at string, t typ) string {
	e := p.expr(at, t)
	if strings.Contains(e, " | ") {
		return "(" + e + ")"
	}
	return e
}

// name prints a reference to a definition, and records the import.
func (p *printer) name(at string, id ref) string {
	if p.linker.lookup(id) == nil {
		p.errs = append(p.errs, fmt.Errorf("%s: %s.%s is not read", at, id.pkg, id.name))
	}
	of := p.linker[id.pkg]
	if of == nil {
		return "_"
	}
	if d := of.byName[id.name]; d != nil && d.shape == objectShape {
		return p.nested(of, d)
	}
	if of == p.pkg {
		return "#" + id.name
	}
	p.imports[cueRoot+of.dir] = of.alias
	return of.alias + ".#" + id.name
}

// nested prints an object within another one, such as an item of a list or the template of a claim. There,
// apiVersion and kind are optional, so they must not be rendered unless the author wrote them.
func (p *printer) nested(of *pkg, d *decl) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\napiVersion?: %q\nkind?: %q\n", of.apiVersion(), d.name)
	for _, f := range d.fields {
		b.WriteString(p.field(d, f))
	}
	b.WriteString("}")
	return b.String()
}

// field prints a member of a struct.
func (p *printer) field(d *decl, f field) string {
	marker := "?"
	if f.required {
		marker = "!"
	}
	return fmt.Sprintf("%s%s: %s\n", label(f.name), marker, p.expr(d.name+"."+f.name, f.typ))
}

// label prints a field name. It quotes names that would otherwise shadow a type or an import that the
// same struct refers to, such as string or resource.
func label(name string) string {
	if hides[name] || token.Lookup(name) != token.IDENT {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// hides are the names that a field must not shadow.
var hides = func() map[string]bool {
	names := map[string]bool{"bytes": true}
	for _, cue := range basics {
		names[cue] = true
	}
	for _, s := range packages {
		names[s.alias] = true
	}
	return names
}()
