package vet

import (
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// references finds references that lead nowhere. CUE accepts them in a part that it does not
// evaluate yet, and into an open struct, because the field may still appear.
func references(v *view) fault.Faults {
	schema := v.CRSchema()
	var out fault.Faults
	for _, r := range v.Syntax().References() {
		if slices.ContainsFunc(r.Path, isHidden) {
			continue // a template, which the evaluation finds or misses
		}
		var at int
		var known []string
		if r.Path[0] == "cr" {
			at, known = unknownField(schema, r.Path)
		} else {
			at, known = v.unknownName(r.Path)
		}
		if at == 0 {
			at, known = v.FirstUnwritten(r.Path)
		}
		if at == 0 {
			continue
		}
		f := fault.Fault{Position: r.Position, Path: joined(r.Path[:at+1]...), Message: "does not exist"}
		if f.Hint = program.HintAmong(r.Path[at], known); f.Hint == "" {
			f.Hint = "there is nothing in " + joined(r.Path[:at]...)
		}
		out = append(out, f)
	}
	return out
}

// isHidden reports whether the name of a field is that of a hidden one, or of a definition.
func isHidden(name string) bool { return strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") }

// unknownField returns the index of the first name of a path that a schema cannot have, and the
// names that it has, or 0 if there is none.
func unknownField(schema cue.Value, path []string) (at int, known []string) {
	for i, name := range path[1:] {
		if schema.IncompleteKind() != cue.StructKind {
			return 0, nil // CUE reports what is wrong with a value, and with one of several types
		}
		next := fieldOf(schema, name)
		switch {
		case next.Exists():
			schema = next
		case schema.Allows(cue.Str(name)):
			return 0, nil
		default:
			return i + 1, program.FieldNames(schema)
		}
	}
	return 0, nil
}

// unknownName returns the index of the first name of a path that the package does not have, and
// the names that it has, or 0 if there is none.
func (v *view) unknownName(path []string) (at int, known []string) {
	for at := 1; at < len(path); at++ {
		if known, open := v.namesBelow(path[:at], path[at]); !open && !slices.Contains(known, path[at]) {
			return at, known
		}
	}
	return 0, nil
}

// inputFields are the fields of an input; those that a package reads come first.
var inputFields = []string{"object", "objects", "apiVersion", "kind", "name", "namespace", "selector"}

// namesBelow returns the names that the package has below a path, and whether it may also have
// next there.
func (v *view) namesBelow(path []string, next string) (known []string, open bool) {
	root, depth := path[0], len(path)
	switch {
	case depth == 1 && (root == "components" || root == "live"):
		return v.Syntax().Names("components")
	case depth == 1 && root == "inputs":
		return v.Syntax().Names("inputs")
	case depth == 2 && root == "components":
		if parts := v.Parts(); !slices.Contains(parts, next) {
			return parts, false
		}
		return v.Syntax().Names(path...)
	case depth == 2 && root == "live":
		if parts, open := v.Syntax().Names("components", path[1]); !open && !slices.Contains(parts, "objects") {
			return nil, false
		}
		return v.Syntax().Names("components", path[1], "objects")
	case depth == 2 && root == "inputs":
		return inputFields[:2], slices.Contains(inputFields, next)
	case depth == 3 && root == "components" && (path[2] == "objects" || path[2] == "outputs"):
		return v.Syntax().Names(path...)
	}
	return nil, true
}
