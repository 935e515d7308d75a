package program

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/source"
	"operetta.dev/schemas"
)

// A builder turns the files of a snapshot into CUE instances.
//
// It stands in for cue/load, which in v0.17.1 cannot import a vendored package
// from an fs.FS (cue issue 4439), and which sets up a module cache and a registry
// for a world that is closed here: what a package needs is in its snapshot.
type builder struct {
	snapshot *source.Snapshot
	context  *build.Context
	loading  []string
}

// buildInstance returns the parsed package of a snapshot with all its imports, and the names that they do not have.
func buildInstance(s *source.Snapshot) (*build.Instance, map[fault.TokenPosition]syntax.UnknownName, fault.Faults) {
	b := &builder{snapshot: s, context: build.NewContext()}
	inst := b.instance(s.Dir())
	if faults := b.addFiles(inst, s.Dir(), ""); len(faults) > 0 {
		return nil, nil, faults
	}
	if faults := contractFaults(inst, contractVersion); len(faults) > 0 {
		return nil, nil, faults
	}
	if err := inst.Complete(); err != nil {
		return nil, nil, withVariables(fault.FromCUE(err, cue.Value{}), inst.Files...)
	}
	unknown := syntax.UnknownNames(inst)
	syntax.Prune(inst)
	return inst, unknown, nil
}

// withVariables says of a field that CUE refuses, because of a variable with its name, how to write it.
func withVariables(faults fault.Faults, files ...*ast.File) fault.Faults {
	hidden := syntax.HiddenVariables(files)
	for i, f := range faults {
		if at, is := hidden[f.Position]; is && f.Hint == "" {
			faults[i].Hint = fmt.Sprintf("quote the label of the field, or rename the variable of line %d", at.Line)
		}
	}
	return faults
}

// ifAsValue matches the line of a field whose value is written as a condition, as in other languages.
var ifAsValue = regexp.MustCompile(`^[^"/]*:\s*if\b`)

// withConditions says of a field whose value is written as a condition how to write that. The first fault of a file that does
// not parse is what is wrong with it.
func (b *builder) withConditions(faults fault.Faults, file string) fault.Faults {
	data, err := fs.ReadFile(b.snapshot.FS(), file)
	lines := strings.Split(string(data), "\n")
	if err != nil || len(faults) == 0 || faults[0].Position.Line < 1 || faults[0].Position.Line > len(lines) {
		return faults
	}
	if ifAsValue.MatchString(lines[faults[0].Position.Line-1]) {
		faults[0].Hint = `an if stands around fields, and is no value: if cr.spec.a {field: "x"}`
	}
	return faults
}

func (b *builder) instance(dir string) *build.Instance {
	inst := b.context.NewInstance(dir, b.load)
	inst.CanonicalImportPath = canonical
	return inst
}

// canonical returns an import path without its version: a snapshot holds one
// version of each package.
func canonical(importPath string) string {
	p := ast.ParseImportPath(importPath).Canonical()
	p.Version = ""
	return p.String()
}

// load returns the instance of an import; nil leaves the path to CUE's own
// packages.
func (b *builder) load(pos token.Pos, importPath string) *build.Instance {
	if !strings.Contains(strings.Split(importPath, "/")[0], ".") {
		return nil
	}
	inst := b.instance(importPath)
	if slices.Contains(b.loading, importPath) {
		inst.Err = errors.Newf(pos, "import cycle: %s", strings.Join(append(b.loading, importPath), " -> "))
		return inst
	}
	b.loading = append(b.loading, importPath)
	defer func() { b.loading = b.loading[:len(b.loading)-1] }()
	p := ast.ParseImportPath(importPath)
	folders := b.snapshot.Folders(p.Path)
	if len(folders) == 0 {
		inst.Err = errors.Newf(pos, "cannot find the package %s%s", importPath, b.nearby(p.Path))
		return inst
	}
	inst.ImportPath = importPath
	for _, dir := range folders {
		for _, f := range b.addFiles(inst, dir, p.Qualifier) {
			inst.ReportError(errors.Newf(pos, "%s", f.Error()))
		}
	}
	_ = inst.Complete() // it keeps the error
	return inst
}

// nearby returns which of the engine's schemas an import path probably means.
func (b *builder) nearby(importPath string) string {
	var known []string
	for _, depth := range []string{"*", "*/*", "*/*/*"} {
		names, _ := fs.Glob(schemas.Light(), "schemas/"+depth+"/*.cue")
		for _, name := range names {
			known = append(known, "operetta.dev/"+path.Dir(name))
		}
	}
	if near, ok := ClosestName(importPath, known); ok && strings.HasPrefix(importPath, "operetta.dev/") {
		return " (" + didYouMean(near) + ")"
	}
	// The types of Kubernetes have other paths elsewhere, such as k8s.io/api/apps/v1.
	end := "/" + path.Join(path.Base(path.Dir(importPath)), path.Base(importPath))
	if strings.HasPrefix(importPath, "operetta.dev/") {
		end = "/" + path.Base(importPath)
	}
	if at := slices.IndexFunc(known, func(k string) bool { return strings.HasSuffix(k, end) }); at >= 0 {
		return " (" + didYouMean(known[at]) + ")"
	}
	return ""
}

// addFiles adds the files of a folder's package to an instance. Without a name,
// the package is the one with the name of its folder, or the only one there.
func (b *builder) addFiles(inst *build.Instance, dir, name string) fault.Faults {
	var files, overlays []*ast.File
	for _, file := range b.snapshot.Files(dir) {
		f, err := b.parse(file)
		switch {
		case err != nil:
			faults := withVariables(fault.FromCUE(withoutTexts(err), cue.Value{}), f)
			return b.withConditions(faults, file)
		case source.IsOverlay(file):
			overlays = append(overlays, f)
		case !excluded(f):
			files = append(files, f)
		}
	}
	if name == "" {
		var wrong *fault.Fault
		if name, wrong = b.choose(dir, files); wrong != nil {
			return fault.Faults{*wrong}
		}
	}
	if path.Clean(dir) == path.Clean(b.snapshot.Dir()) {
		files = append(files, inPackage(overlays, name)...)
	}
	var faults fault.Faults
	for _, f := range files {
		if f.PackageName() != name {
			if strings.HasSuffix(f.Filename, source.TestSuffix) {
				faults = append(faults, otherPackage(f, name))
			}
			continue
		}
		if a := fileAttribute(f, "extern"); a != nil {
			faults = append(faults, fault.Fault{
				Position: fault.PositionAt(a.Pos()),
				Message:  "@extern is not supported yet, so that what it should bring in would be missing",
				Hint:     "write the data as CUE: cue import turns YAML, JSON and text into it",
			})
		}
		if err := inst.AddSyntax(f); err != nil {
			faults = append(faults, withVariables(fault.FromCUE(err, cue.Value{}), f)...)
		}
	}
	if len(inst.Files) == 0 && len(faults) == 0 {
		faults = fault.Faults{{Message: fmt.Sprintf("no file in %s is of package %s", b.snapshot.Display(dir), name)}}
	}
	return faults
}

// inPackage returns files as those of a package, whatever their clauses say.
func inPackage(files []*ast.File, name string) []*ast.File {
	for _, f := range files {
		for _, d := range f.Decls {
			if p, ok := d.(*ast.Package); ok {
				p.Name.Name = name
			}
		}
	}
	return files
}

// otherPackage returns the fault of a file of tests that nobody would run.
func otherPackage(f *ast.File, name string) fault.Fault {
	return fault.Fault{
		Position: fault.Position{File: f.Filename, Line: 1},
		Message:  fmt.Sprintf("these tests are of package %s, and the package is %s", f.PackageName(), name),
		Hint:     "write package " + name + " at the top of the file",
	}
}

func (b *builder) parse(name string) (*ast.File, error) {
	data, err := fs.ReadFile(b.snapshot.FS(), name)
	if err != nil {
		return nil, err
	}
	return parser.ParseFile(b.snapshot.Display(name), data, parser.ParseComments, parser.Version(b.snapshot.LanguageOf(name)))
}

// withoutTexts returns the errors of a file that does not parse without the texts and
// numbers that they quote: it is not known yet which of them belong to a Secret.
func withoutTexts(err error) error {
	var out errors.Error
	for _, e := range errors.Errors(err) {
		format, args := e.Msg()
		args = slices.Clone(args)
		for i, arg := range args[:max(len(args)-1, 0)] {
			if tok, ok := arg.(token.Token); ok && tok.IsLiteral() && tok != token.IDENT {
				args[i+1] = "..."
			}
		}
		out = errors.Append(out, errors.Newf(e.Position(), format, args...))
	}
	return out
}

// choose returns the name of the package in a folder.
func (b *builder) choose(dir string, files []*ast.File) (string, *fault.Fault) {
	var names []string
	for _, f := range files {
		name := f.PackageName()
		// Files of the folders above do not decide.
		if name == "" || path.Dir(f.Filename) != path.Clean(b.snapshot.Display(dir)) || slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
	}
	switch {
	case slices.Contains(names, b.snapshot.Name()):
		return b.snapshot.Name(), nil
	case len(names) == 1:
		return names[0], nil
	case len(names) == 0:
		return "", &fault.Fault{
			Position: firstLine(files),
			Message:  "no file in " + b.snapshot.Display(dir) + " says which package it belongs to",
			Hint:     "write package " + b.snapshot.Name() + " at the top of each file",
		}
	}
	return "", &fault.Fault{
		Message: fmt.Sprintf("the folder %s holds several packages: %s", b.snapshot.Display(dir), strings.Join(names, ", ")),
		Hint:    "move all but one into folders of their own",
	}
}

// firstLine returns the first line of the first of some files.
func firstLine(files []*ast.File) fault.Position {
	if len(files) == 0 {
		return fault.Position{}
	}
	return fault.Position{File: files[0].Filename, Line: 1}
}

// excluded reports whether an attribute excludes a file from its package. No
// tag is ever set here.
func excluded(f *ast.File) bool {
	if fileAttribute(f, "ignore") != nil {
		return true
	}
	a := fileAttribute(f, "if")
	if a == nil {
		return false
	}
	_, body := a.Split()
	expr, err := parser.ParseExpr("", body)
	return err == nil && !holdsWithoutTags(expr)
}

// holdsWithoutTags evaluates the expression of an @if attribute.
func holdsWithoutTags(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return holdsWithoutTags(e.X)
	case *ast.UnaryExpr:
		return !holdsWithoutTags(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.LAND {
			return holdsWithoutTags(e.X) && holdsWithoutTags(e.Y)
		}
		return holdsWithoutTags(e.X) || holdsWithoutTags(e.Y)
	}
	return false // a tag
}

// fileAttribute returns the attribute of a name that stands above a file's
// package clause.
func fileAttribute(f *ast.File, name string) *ast.Attribute {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.Attribute:
			if key, _ := d.Split(); key == name {
				return d
			}
		case *ast.CommentGroup:
		default:
			return nil
		}
	}
	return nil
}
