package syntax

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A SourceObject is an object or an input in the text of the package.
type SourceObject struct {
	// Kinds are its possible kinds, as far as the text shows; empty means unknown.
	Kinds []string
	text  []sourceAt
}

// sourceAt is an expression of the object, with the state of the tracer that found it.
type sourceAt struct {
	tracer

	text ast.Node
}

// trace calls a function with each expression at a path of the object, and with the tracer that found it. It returns the
// sources outside the package and the types that the tracers came across.
func (w *SourceObject) trace(path []string, found func(t *tracer, n ast.Node)) (sources []ExternalSource, types []ImportedType) {
	for _, at := range w.text {
		t := &tracer{index: at.index, seen: map[string]bool{}, at: at.at, trail: at.trail, meant: at.meant, left: len(path)}
		t.find(at.text, path, 0, func(n ast.Node) { found(t, n) })
		sources, types = append(sources, t.origins...), append(types, t.types...)
	}
	return sources, types
}

// SourceObjects returns the objects and inputs in the text, and the external sources of objects
// that come as a whole from outside the package.
func (x *Index) SourceObjects() (objects, inputs []SourceObject, wholes []ExternalSource) {
	objects, wholes = x.sourceObjectsAt("components", []string{Each, "objects", Each})
	hooks, more := x.sourceObjectsAt("hooks", []string{Each, Each, "objects", Each})
	inputs, _ = x.sourceObjectsAt("inputs", []string{Each})
	return slices.Concat(objects, hooks), inputs, slices.Concat(wholes, more)
}

// sourceObjectsAt returns the objects in the text at a path below a field of the root.
func (x *Index) sourceObjectsAt(root string, path []string) ([]SourceObject, []ExternalSource) {
	t := &tracer{index: x, whole: true, seen: map[string]bool{}, trail: []string{root}, left: len(path)}
	found := map[string]*SourceObject{}
	for _, m := range x.fields[root] {
		if m.field == nil {
			continue
		}
		t.at, t.meant = fault.PositionAt(m.field.Label.Pos()), nil
		t.pushUntrusted(m.field.Attrs)
		t.find(m.value, path, 0, func(n ast.Node) {
			key := strings.Join(t.trail, "\x00")
			if found[key] == nil {
				found[key] = &SourceObject{}
			}
			found[key].text = append(found[key].text, sourceAt{*t, n})
		})
	}
	var out []SourceObject
	for _, key := range slices.Sorted(maps.Keys(found)) {
		w := found[key]
		texts, types := w.literalsAt("kind")
		w.Kinds = slices.Concat(texts, types)
		out = append(out, *w)
	}
	return out, t.origins
}

// literalsAt returns the string literals at a path of the object and, for the path of the kind,
// the Kubernetes types that the object is unified with.
func (w *SourceObject) literalsAt(path ...string) (texts, types []string) {
	_, imported := w.trace(path, func(_ *tracer, n ast.Node) {
		if lit, ok := n.(*ast.BasicLit); ok {
			texts = append(texts, unquoted(lit))
		}
	})
	for _, t := range imported {
		types = append(types, t.Name)
	}
	return texts, types
}

// Path returns its path in the package. A computed label is returned as the author wrote it.
func (w *SourceObject) Path() []string { return w.text[0].trail }

// HasLiteral reports whether there is a given string literal at a path of the object.
func (w *SourceObject) HasLiteral(text string, path ...string) bool {
	texts, _ := w.literalsAt(path...)
	return slices.Contains(texts, text)
}

// ExternalSources returns the sources, outside the package, of a field of the object and of all
// values in the field.
func (w *SourceObject) ExternalSources(path ...string) []ExternalSource {
	out, _ := w.trace(path, func(t *tracer, n ast.Node) { t.value(n, 0) })
	return out
}
