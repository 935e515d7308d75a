package syntax

import (
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// A Written is an object of a component or a hook, or an input, as the package has it in
// its text.
type Written struct {
	// Kinds are what it may be, as far as the text tells; none is not known.
	Kinds []string
	index *Index
	text  []trailed
}

// trailed is a piece of text and what leads to it.
type trailed struct {
	text  ast.Node
	at    fault.Position
	trail []string
	meant []string
}

// Written returns the objects and inputs of the package as far as the text has them, and
// where what there is comes from elsewhere as a whole.
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
				found[key] = &Written{index: x}
			}
			found[key].text = append(found[key].text, trailed{n, t.at, t.trail, t.meant})
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
		t := &tracer{index: w.index, seen: map[string]bool{}}
		t.to(at.text, path, 0, func(n ast.Node) {
			if lit, ok := n.(*ast.BasicLit); ok {
				texts = append(texts, unquoted(lit))
			}
		})
		types = append(types, t.types...)
	}
	return texts, types
}

// Path returns what leads to it in the package, with labels that are computed as they are
// written.
func (w *Written) Path() []string { return w.text[0].trail }

// Says reports whether a text is written out at a path of the object.
func (w *Written) Says(text string, path ...string) bool {
	texts, _ := w.written(path...)
	return slices.Contains(texts, text)
}

// Outside returns what is not written in the package of a field of the object, or of what
// is in it.
func (w *Written) Outside(path ...string) []Outside {
	var out []Outside
	for _, at := range w.text {
		t := &tracer{index: w.index, seen: map[string]bool{}, at: at.at, trail: at.trail, meant: at.meant, left: len(path)}
		t.to(at.text, path, 0, func(n ast.Node) { t.value(n, 0) })
		out = append(out, t.origins...)
	}
	return out
}
