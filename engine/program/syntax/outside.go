package syntax

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// An Outside is a source of a value that is not written in the package: a field of the
// custom resource, of a live object, of an input or of the configuration.
type Outside struct {
	// Reference is what the package refers to, with Each where it goes through all.
	Reference
	// Below leads from there to the value; it is empty for the value itself.
	Below []string
	// Key says that it is the name of what is there, and not its value.
	Key bool
	// At is where the package has the field that gets the value, and Field is the path of
	// that. An attribute counts there.
	At    fault.Position
	Field string
	// Meant are the words of the @untrusted attributes on that field and around it.
	Meant []string
	// Cut says that the tracer gave up there: the source is unknown, and Reference is empty.
	Cut bool
}

// A tracer follows a value of the package to its sources, as far as the text tells. A
// condition is no source: it decides about something that is written.
type tracer struct {
	index *Index
	// whole stops the tracer at the end of the path, even at a name.
	whole   bool
	seen    map[string]bool
	origins []Outside
	// meant are the words of the attributes around.
	meant []string
	// at and trail are the field that is looked into, and what of the path leads to it.
	at    fault.Position
	trail []string
	// left is how much of the path is still to be found.
	left int
	// types are the Kubernetes types that are met where a kind is looked for.
	types []string
}

// maxTrace bounds how many names are followed one after the other, and maxTraceSteps
// bounds how many are followed in all.
const (
	maxTrace      = 64
	maxTraceSteps = 20_000
)

// untrustedAttribute marks a value that a tenant is meant to choose.
const untrustedAttribute = "untrusted"

// to looks for a path below an expression. What is there is given to found, and what may
// have it without being written is an origin.
func (t *tracer) to(e ast.Node, path []string, depth int, found func(ast.Node)) {
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
	switch e := e.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		if t.again(chainOf(e.(ast.Expr)), path) {
			return
		}
	case *ast.StructLit:
		defer t.mean(attributesOf(e.Elts))()
	}
	leads, ends := t.index.leads(e, path)
	for _, l := range leads {
		t.follow(l, depth+1, found)
	}
	switch {
	case ends && len(path) == 0:
		found(e)
	case ends:
		t.made(e, depth)
	}
}

// again records that a chain is followed, with the Kubernetes type that it names, and
// reports whether it was followed before under the same attributes: they count in one place
// and not in another that refers to the same.
func (t *tracer) again(c chain, path []string) bool {
	root := c.root()
	if root == nil {
		return false
	}
	path = slices.Concat(c.names(), path)
	if _, imported := root.Node.(*ast.ImportSpec); imported && len(path) == 2 && path[1] == "kind" && strings.HasPrefix(path[0], "#") {
		t.types = append(t.types, path[0][1:])
	}
	key := fmt.Sprintf("%p %s %d %s", root, strings.Join(path, "."), len(path), strings.Join(t.meant, ","))
	before := t.seen[key]
	t.seen[key] = true
	return before
}

// follow looks for a path where an expression leads. Whoever chooses the fields of a struct
// chooses their names as well.
func (t *tracer) follow(l lead, depth int, found func(ast.Node)) {
	switch {
	case l.outside != nil:
		t.origins = append(t.origins, Outside{
			Reference: *l.outside, Below: l.path, At: t.at, Field: strings.Join(t.trail, "."), Meant: t.meant,
		})
	case l.key:
		before := len(t.origins)
		t.to(l.value, l.path, depth, func(ast.Node) {})
		for i := range t.origins[before:] {
			t.origins[before+i].Key = true
		}
	case l.entered:
		t.enter(l, depth, found)
	default:
		t.to(l.value, l.path, depth, found)
	}
}

// cut records, once, that the tracer gave up.
func (t *tracer) cut() {
	if !slices.ContainsFunc(t.origins, func(o Outside) bool { return o.Cut }) {
		t.origins = append(t.origins, Outside{Cut: true, At: t.at, Field: strings.Join(t.trail, ".")})
	}
}

// enter looks for a path in a field.
func (t *tracer) enter(l lead, depth int, found func(ast.Node)) {
	defer t.mean(l.field.Attrs)()
	at, trail, left := t.at, t.trail, t.left
	if len(l.path) < left { // otherwise it is one of the names on the way to what is referred to
		t.at, t.trail, t.left = l.Position(), append(slices.Clip(trail), labelText(l.field.Label)), len(l.path)
	}
	t.to(l.value, l.path, depth, found)
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

// mean adds the words of @untrusted attributes, and returns a function that removes them.
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

// value records the origins of a value as a whole: of all that is in it, and of what it
// embeds.
func (t *tracer) value(e ast.Node, depth int) {
	switch e := e.(type) {
	case *ast.StructLit:
		defer t.mean(attributesOf(e.Elts))()
	case *ast.ListLit:
	case *ast.Comprehension:
		t.to(e.Value, nil, depth, func(n ast.Node) { t.value(n, depth+1) })
		return
	default:
		t.made(e, depth)
		return
	}
	leads, _ := t.index.leads(e, []string{Each})
	for _, l := range leads {
		l.path = nil
		t.follow(l, depth+1, func(n ast.Node) { t.value(n, depth+1) })
	}
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
