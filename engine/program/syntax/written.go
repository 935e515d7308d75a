package syntax

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A Written is an object or an input as the text of the package has it.
type Written struct {
	// Kinds are the kinds that it may be of, as far as the text tells; empty is unknown.
	Kinds []string
	text  []trailed
}

// trailed is a piece of text, with the tracer that came there.
type trailed struct {
	tracer

	text ast.Node
}

// tracerFor returns a tracer that begins at the text, to look for a path of so many names.
func (w trailed) tracerFor(names int) *tracer {
	return &tracer{index: w.index, seen: map[string]bool{}, at: w.at, trail: w.trail, meant: w.meant, left: names}
}

// Written returns the objects and inputs that the text has, and the sources of objects that
// come from outside the package as a whole.
func (x *Index) Written() (objects, inputs []Written, wholes []Outside) {
	objects, wholes = x.writtenAt("components", []string{Each, "objects", Each})
	hooks, more := x.writtenAt("hooks", []string{Each, Each, "objects", Each})
	inputs, _ = x.writtenAt("inputs", []string{Each})
	return slices.Concat(objects, hooks), inputs, slices.Concat(wholes, more)
}

// writtenAt returns what the text has at a path below a field of the root.
func (x *Index) writtenAt(root string, path []string) ([]Written, []Outside) {
	t := &tracer{index: x, whole: true, seen: map[string]bool{}, trail: []string{root}, left: len(path)}
	found := map[string]*Written{}
	for _, m := range x.fields[root] {
		if m.field == nil {
			continue
		}
		t.at, t.meant = fault.At(m.field.Label.Pos()), nil
		t.mean(m.field.Attrs)
		t.to(m.value, path, 0, func(n ast.Node) {
			key := strings.Join(t.trail, "\x00")
			if found[key] == nil {
				found[key] = &Written{}
			}
			found[key].text = append(found[key].text, trailed{*t, n})
		})
	}
	var out []Written
	for _, key := range slices.Sorted(maps.Keys(found)) {
		w := found[key]
		texts, types := w.written("kind")
		w.Kinds = slices.Concat(texts, types)
		out = append(out, *w)
	}
	return out, t.origins
}

// written returns the texts that are written out at a path of the object, and the
// Kubernetes types that it is made of, if the path is that of the kind.
func (w *Written) written(path ...string) (texts, types []string) {
	for _, at := range w.text {
		t := at.tracerFor(0)
		t.to(at.text, path, 0, func(n ast.Node) {
			if lit, ok := n.(*ast.BasicLit); ok {
				texts = append(texts, unquoted(lit))
			}
		})
		types = append(types, t.types...)
	}
	return texts, types
}

// Path returns its path in the package. A computed label is shown as the author wrote it.
func (w *Written) Path() []string { return w.text[0].trail }

// Says reports whether a text is written out at a path of the object.
func (w *Written) Says(text string, path ...string) bool {
	texts, _ := w.written(path...)
	return slices.Contains(texts, text)
}

// Outside returns the sources of a field of the object, and of all that is in the field,
// that are not written in the package.
func (w *Written) Outside(path ...string) []Outside {
	var out []Outside
	for _, at := range w.text {
		t := at.tracerFor(len(path))
		t.to(at.text, path, 0, func(n ast.Node) { t.value(n, 0) })
		out = append(out, t.origins...)
	}
	return out
}
