package syntax

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// An ExternalSource is a source of a value from outside the package: a field of the custom
// resource, of a live object, of an input or of the configuration.
type ExternalSource struct {
	// Reference is the reference in the package, with Each where a loop goes through all.
	Reference
	// Below is the path from the reference to the value; it is empty for the value itself.
	Below []string
	// Key is true if the source is the name of a field, and not its value.
	Key bool
	// At and Field are the position and the path of the field of the package that gets the
	// value. An attribute on that field takes effect.
	At    fault.Position
	Field string
	// Meant are the words of the @untrusted attributes on that field and around it.
	Meant []string
	// Cut is true if the tracer gave up there: the source is unknown, and Reference is empty.
	Cut bool
}

// A tracer follows a value of the package to its sources, as far as the text shows. A condition
// is not a source: it only decides whether a value that the package writes is used.
type tracer struct {
	index *Index
	// whole stops the tracer at the end of the path, even at a name.
	whole   bool
	seen    map[string]bool
	origins []ExternalSource
	// meant are the words of the attributes around.
	meant []string
	// at and trail are the position and the path of the current field.
	at    fault.Position
	trail []string
	// left is the number of names of the path that are still to be found.
	left int
	// conditional says that a condition or a loop is around.
	conditional bool
	// types are the Kubernetes types that a kind comes from.
	types []ImportedType
}

// maxTrace bounds how many names are followed one after the other, and maxTraceSteps
// bounds how many are followed in all.
const (
	maxTrace      = 64
	maxTraceSteps = 20_000
)

// untrustedAttribute marks a value that a tenant is meant to choose.
const untrustedAttribute = "untrusted"

// find calls found with each expression at a path below an expression. External values that may
// contain the path are recorded as origins.
func (t *tracer) find(e ast.Node, path []string, depth int, found func(ast.Node)) {
	switch {
	case e == nil:
		return
	case depth > maxTrace || len(t.seen) > maxTraceSteps:
		t.cut()
		return
	case len(path) == 0 && t.whole:
		found(e)
		return
	}
	if c, ok := asChain(e); ok && t.visited(c, path) {
		return
	}
	if l, ok := e.(*ast.StructLit); ok {
		defer t.pushUntrusted(attributesOf(l.Elts))()
	}
	resolutions, ends := t.index.resolve(e, path)
	for _, r := range resolutions {
		t.follow(r, depth+1, found)
	}
	switch {
	case ends && len(path) == 0:
		found(e)
	case ends:
		t.originsOfParts(e, depth)
	}
}

// visited reports whether a chain was followed before under the same attributes, and records it,
// with the Kubernetes type that it names. The attributes matter because the same value may be
// marked in one place and not in another.
func (t *tracer) visited(c chain, path []string) bool {
	root := c.root()
	if root == nil {
		return false
	}
	path = slices.Concat(c.names(), path)
	if spec, imported := root.Node.(*ast.ImportSpec); imported && len(path) == 2 && path[1] == "kind" && strings.HasPrefix(path[0], "#") {
		t.types = append(t.types, ImportedType{Package: importPath(spec), Name: path[0][1:]})
	}
	key := fmt.Sprintf("%p %s %d %s", root, strings.Join(path, "."), len(path), strings.Join(t.meant, ","))
	before := t.seen[key]
	t.seen[key] = true
	return before
}

// follow continues the search after one step. Whoever chooses the fields of a struct chooses their
// names as well.
func (t *tracer) follow(r resolution, depth int, found func(ast.Node)) {
	before := t.conditional
	t.conditional = before || r.conditional
	defer func() { t.conditional = before }()
	switch {
	case r.external != nil:
		t.origins = append(t.origins, ExternalSource{
			Reference: *r.external, Below: r.path, At: t.at, Field: strings.Join(t.trail, "."), Meant: t.meant,
		})
	case r.key:
		before := len(t.origins)
		t.find(r.value, r.path, depth, func(ast.Node) {})
		for i := range t.origins[before:] {
			t.origins[before+i].Key = true
		}
	case r.entered:
		t.findInField(r, depth, found)
	default:
		t.find(r.value, r.path, depth, found)
	}
}

// cut records, once, that the tracer gave up.
func (t *tracer) cut() {
	if !slices.ContainsFunc(t.origins, func(o ExternalSource) bool { return o.Cut }) {
		t.origins = append(t.origins, ExternalSource{Cut: true, At: t.at, Field: strings.Join(t.trail, ".")})
	}
}

// findInField looks for a path in a field.
func (t *tracer) findInField(r resolution, depth int, found func(ast.Node)) {
	defer t.pushUntrusted(r.field.Attrs)()
	at, trail, left := t.at, t.trail, t.left
	if len(r.path) < left { // otherwise the field is on the path of a reference, and not of the value
		t.at, t.trail, t.left = r.Position(), append(slices.Clip(trail), labelText(r.field.Label)), len(r.path)
	}
	t.find(r.value, r.path, depth, found)
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

// pushUntrusted adds the words of @untrusted attributes, and returns a function that removes them.
func (t *tracer) pushUntrusted(attributes []*ast.Attribute) (restore func()) {
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

// labelText returns a label as it is in a path, and the source of a computed label.
func labelText(l ast.Label) string {
	if name, ok := literalLabel(l); ok {
		return Selector(name).String()
	}
	if e, ok := l.(ast.Expr); ok {
		return Source(e)
	}
	return Each
}

// value records the origins of a whole value: of all its fields, elements and embeddings.
func (t *tracer) value(e ast.Node, depth int) {
	switch e := e.(type) {
	case *ast.StructLit:
		defer t.pushUntrusted(attributesOf(e.Elts))()
	case *ast.ListLit:
	case *ast.Comprehension:
		t.find(e.Value, nil, depth, func(n ast.Node) { t.value(n, depth+1) })
		return
	default:
		t.originsOfParts(e, depth)
		return
	}
	resolutions, _ := t.index.resolve(e, []string{Each})
	for _, r := range resolutions {
		r.path = nil
		t.follow(r, depth+1, func(n ast.Node) { t.value(n, depth+1) })
	}
}

// originsOfParts records the origins of the parts from which an expression computes a value.
func (t *tracer) originsOfParts(e ast.Node, depth int) {
	inside := func(parts ...ast.Expr) {
		for _, part := range parts {
			t.find(part, nil, depth+1, func(n ast.Node) { t.value(n, depth+1) })
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
