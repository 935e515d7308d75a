package syntax

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"operetta.dev/engine/fault"
)

// Each stands in a path for every field of a struct and every element of a list.
const Each = "*"

// An Outside is something that is not written in the package, of which a value is made:
// a field of the custom resource, of a live object, of an input or of the configuration.
type Outside struct {
	// Reference is what the package refers to, with Each where it goes through all.
	Reference
	// Below leads from there to the value; it is empty for the value itself.
	Below []string
	// Key says that it is the name of what is there, and not its value.
	Key bool
	// At is the field of the package that gets the value, which is where an attribute counts,
	// and Field its path.
	At    fault.Position
	Field string
	// Meant are the words of the attributes @untrusted that are written there or around it.
	Meant []string
	// Cut says that names were followed as far as there, and no further: what it comes from is
	// not known, and Reference is empty.
	Cut bool
}

// A tracer follows a value of the package to its origins, as far as the text tells: along
// names, templates, their parameters and loops. A condition is no origin: what it decides
// about is written.
type tracer struct {
	index *Index
	// whole says that what the path leads to is wanted as it is written.
	whole   bool
	seen    map[string]bool
	origins []Outside
	// meant are the words of the attributes around.
	meant []string
	// at and trail are the field that is looked into, and what of the path leads to it.
	at    fault.Position
	trail []string
	// left is how much of the path that is asked for is still to come.
	left int
	// types are the Kubernetes types that are met where a kind is looked for.
	types []string
}

// maxTrace bounds how many names are followed one after the other, and steps bounds all.
const (
	maxTrace      = 64
	maxTraceSteps = 20_000
)

// untrustedAttribute says of a value that it may come from a tenant.
const untrustedAttribute = "untrusted"

// to looks for a path below an expression. What is there is given to found, and what may
// have it without being written is an origin.
func (t *tracer) to(e ast.Node, path []string, depth int, found func(ast.Node)) {
	if e == nil {
		return
	}
	if depth > maxTrace || len(t.seen) > maxTraceSteps {
		t.cut()
		return
	}
	if len(path) == 0 && t.whole {
		found(e)
		return
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		t.to(e.X, path, depth, found)
		return
	case *ast.Alias:
		t.to(e.Expr, path, depth, found)
		return
	case *ast.UnaryExpr:
		if e.Op == token.MUL {
			t.to(e.X, path, depth, found)
			return
		}
	case *ast.BinaryExpr:
		if e.Op == token.AND || e.Op == token.OR {
			t.to(e.X, path, depth, found)
			t.to(e.Y, path, depth, found)
			return
		}
	case *ast.Ident:
		t.chain(e, path, depth, found)
		return
	case *ast.SelectorExpr:
		t.chain(e, path, depth, found)
		return
	case *ast.IndexExpr:
		t.chain(e, path, depth, found)
		return
	}
	if len(path) == 0 {
		found(e)
		return
	}
	switch e := e.(type) {
	case *ast.StructLit:
		t.decls(e.Elts, path, depth, found)
	case *ast.ListLit:
		if path[0] == Each {
			for _, element := range e.Elts {
				t.element(element, path[1:], depth, found)
			}
		}
	case *ast.Comprehension:
		t.to(e.Value, path, depth, found)
	case *ast.CallExpr:
		t.call(e, path, depth, found)
	}
}

// cut records, once, that not all was followed.
func (t *tracer) cut() {
	if !slices.ContainsFunc(t.origins, func(o Outside) bool { return o.Cut }) {
		t.origins = append(t.origins, Outside{Cut: true, At: t.at, Field: strings.Join(t.trail, ".")})
	}
}

// element looks for a path below an element of a list, or all that a loop makes.
func (t *tracer) element(e ast.Expr, path []string, depth int, found func(ast.Node)) {
	switch e := e.(type) {
	case *ast.Ellipsis:
		t.to(e.Type, path, depth+1, found)
	case *ast.Comprehension:
		t.to(e.Value, path, depth+1, found)
	default:
		t.to(e, path, depth+1, found)
	}
}

// decls looks for a path below declarations.
func (t *tracer) decls(decls []ast.Decl, path []string, depth int, found func(ast.Node)) {
	defer t.mean(attributesOf(decls))()
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.Field:
			name, literal := literalLabel(d.Label)
			matches := literal && (name == path[0] || path[0] == Each && isRegular(name))
			if !matches && (literal || kindOf(d) == dynamic && path[0] != Each && !mayBe(d, path[0])) {
				continue
			}
			t.enter(d, path[1:], depth, found)
		case *ast.Comprehension:
			t.to(d.Value, path, depth+1, found)
		case *ast.EmbedDecl:
			t.to(d.Expr, path, depth+1, found)
		}
	}
}

// enter looks for a path in a field.
func (t *tracer) enter(f *ast.Field, path []string, depth int, found func(ast.Node)) {
	defer t.mean(f.Attrs)()
	at, trail, left := t.at, t.trail, t.left
	if len(path) < left { // otherwise it is one of the names on the way to what is referred to
		t.at, t.trail, t.left = fault.At(f.Label.Pos()), append(slices.Clip(trail), labelText(f.Label)), len(path)
	}
	t.to(f.Value, path, depth+1, found)
	t.at, t.trail, t.left = at, trail, left
}

// attributesOf returns the attributes of a struct.
func attributesOf(decls []ast.Decl) []*ast.Attribute {
	var out []*ast.Attribute
	for _, d := range decls {
		if a, ok := d.(*ast.Attribute); ok {
			out = append(out, a)
		}
	}
	return out
}

// mean adds what attributes say is meant, and returns how to take it back.
func (t *tracer) mean(attributes []*ast.Attribute) (restore func()) {
	before := t.meant
	for _, a := range attributes {
		if name, contents := a.Split(); name == untrustedAttribute {
			for word := range strings.SplitSeq(contents, ",") {
				t.meant = append(slices.Clip(t.meant), strings.TrimSpace(word))
			}
		}
	}
	return func() { t.meant = before }
}

// labelText returns a label as a path has it, and one that is computed as it is written.
func labelText(l ast.Label) string {
	if name, ok := literalLabel(l); ok {
		return Selector(name).String()
	}
	if e, ok := l.(ast.Expr); ok {
		return Source(e)
	}
	return Each
}

// call looks for a path below what a function makes.
func (t *tracer) call(e *ast.CallExpr, path []string, depth int, found func(ast.Node)) {
	name := ""
	switch fun := e.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name, _ = literalLabel(fun.Sel)
	}
	switch {
	case len(e.Args) == 0:
	case name == "Concat", name == "FlattenN":
		t.to(e.Args[0], append([]string{Each}, path...), depth+1, found)
	case slices.Contains(keepers, name):
		t.to(e.Args[0], path, depth+1, found)
	default:
		t.made(e, depth)
	}
}

// keepers are functions that make of their first argument something of the same form.
var keepers = []string{"close", "Reverse", "Repeat", "Slice", "Take", "Drop", "Sort", "SortStable"}

// value records the origins of a value as a whole.
func (t *tracer) value(e ast.Node, depth int) {
	whole := func(n ast.Node) { t.value(n, depth+1) }
	switch e := e.(type) {
	case *ast.StructLit:
		t.decls(slices.DeleteFunc(slices.Clone(e.Elts), isEmbedding), []string{Each}, depth, whole)
		for _, d := range slices.DeleteFunc(slices.Clone(e.Elts), func(d ast.Decl) bool { return !isEmbedding(d) }) {
			switch d := d.(type) {
			case *ast.EmbedDecl:
				t.to(d.Expr, nil, depth+1, whole)
			case *ast.Comprehension:
				t.to(d.Value, nil, depth+1, whole)
			}
		}
	case *ast.ListLit:
		t.to(e, []string{Each}, depth, whole)
	case *ast.Comprehension:
		t.to(e.Value, nil, depth, whole)
	default:
		t.made(e, depth)
	}
}

func isEmbedding(d ast.Decl) bool {
	_, embeds := d.(*ast.EmbedDecl)
	_, comprehends := d.(*ast.Comprehension)
	return embeds || comprehends
}

// made records the origins of what an expression makes of its parts.
func (t *tracer) made(e ast.Node, depth int) {
	inside := func(parts ...ast.Expr) {
		for _, part := range parts {
			t.to(part, nil, depth+1, func(n ast.Node) { t.value(n, depth+1) })
		}
	}
	switch e := e.(type) {
	case *ast.Interpolation:
		inside(e.Elts...)
	case *ast.UnaryExpr:
		inside(e.X)
	case *ast.BinaryExpr:
		if !slices.Contains(truths, e.Op) {
			inside(e.X, e.Y)
		}
	case *ast.CallExpr:
		if !noValue(e) {
			inside(e.Args...)
		}
	}
}

// chain follows a chain of selections, with a path below it.
func (t *tracer) chain(e ast.Expr, path []string, depth int, found func(ast.Node)) {
	base, sels := selections(e)
	path = slices.Concat(sels, path)
	root, isName := base.(*ast.Ident)
	if !isName {
		t.to(base, path, depth+1, found) // such as a list that is chosen from
		return
	}
	if len(path) == 2 && path[1] == "kind" && strings.HasPrefix(path[0], "#") && isImported(root) {
		t.types = append(t.types, path[0][1:])
	}
	// What is meant in one place is not meant in another that refers to the same.
	key := fmt.Sprintf("%p %s %d %s", root, strings.Join(path, "."), len(path), strings.Join(t.meant, ","))
	if t.seen[key] {
		return
	}
	t.seen[key] = true
	if loop, ok := root.Scope.(*ast.ForClause); ok {
		t.loop(loop, root, path, depth, found)
		return
	}
	if outside, ok := t.outside(root, len(sels), path); ok {
		outside.At, outside.Field, outside.Meant = t.at, strings.Join(t.trail, "."), t.meant
		t.origins = append(t.origins, outside)
		return
	}
	for _, m := range t.index.declared(root) {
		t.to(m.value, path, depth+1, found)
	}
	if from, ok := t.index.pathOf(root, 0); ok && from[0] == "components" && len(from) > 0 {
		for _, m := range t.index.fields["components"] {
			t.to(m.value, slices.Concat(from[1:], path), depth+1, found)
		}
	}
	if name := fieldName(root); !isRegular(name) {
		for _, m := range t.index.labelled[name] {
			t.to(m.value, path, depth+1, found)
		}
	}
}

// outside returns the origin that a chain leads to, if what it leads to is not written in
// the package. So many of the path are in the chain itself.
func (t *tracer) outside(root *ast.Ident, own int, path []string) (Outside, bool) {
	from, ok := t.index.pathOf(root, 0)
	if name := fieldName(root); !ok && name == "config" && atRoot(root) {
		from, ok = []string{name}, true
	}
	if !ok || !slices.Contains([]string{"cr", "live", "inputs", "config"}, from[0]) {
		return Outside{}, false
	}
	at := slices.Concat(from, path[:own])
	if from[0] == "inputs" && len(at) > 2 && !strings.HasPrefix(at[2], "object") {
		return Outside{}, false // what the package itself says of the input
	}
	return Outside{Reference: Reference{Path: at, Position: fault.At(root.Pos())}, Below: slices.Clone(path[own:])}, true
}

// loop follows a variable of a loop to what the loop goes through. The names of the
// fields of a struct are as open as what is in it.
func (t *tracer) loop(loop *ast.ForClause, variable *ast.Ident, path []string, depth int, found func(ast.Node)) {
	if loop.Key != nil && loop.Key.Name == variable.Name {
		before := len(t.origins)
		t.to(loop.Source, []string{Each}, depth+1, func(ast.Node) {})
		for i := range t.origins[before:] {
			t.origins[before+i].Key = true
		}
		return
	}
	t.to(loop.Source, append([]string{Each}, path...), depth+1, found)
}

func isImported(root *ast.Ident) bool {
	_, imported := root.Node.(*ast.ImportSpec)
	return imported
}

// selections returns what a chain of selections begins with, and the names of them; any
// that is not written out is Each.
func selections(e ast.Expr) (base ast.Expr, names []string) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return selections(e.X)
	case *ast.SelectorExpr:
		base, names = selections(e.X)
		if name, ok := literalLabel(e.Sel); ok {
			return base, append(names, name)
		}
		return base, append(names, Each)
	case *ast.IndexExpr:
		base, names = selections(e.X)
		if lit, ok := e.Index.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			return base, append(names, unquoted(lit))
		}
		return base, append(names, Each)
	}
	return e, nil
}
