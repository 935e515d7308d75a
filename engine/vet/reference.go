package vet

import (
	"slices"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// references finds references that lead nowhere: in a part that is not evaluated
// yet, or into an open struct, CUE takes them for what may still come.
func references(v *view) fault.Faults {
	schema := v.CRSchema()
	var out fault.Faults
	for _, r := range v.Syntax().References() {
		at, known := 0, []string(nil)
		switch r.Path[0] {
		case "cr":
			at, known = unknownField(schema, r.Path)
		case "components":
			at, known = v.unknownPart(r.Path)
		case "live":
			at, known = v.unknownObject(r.Path)
		case "inputs":
			at, known = v.unknownInput(r.Path)
		}
		if at == 0 {
			at, known = v.Lacks(r.Path)
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

// unknownField returns the index of the first name of a path that a schema cannot
// have, or 0.
func unknownField(schema cue.Value, path []string) (at int, known []string) {
	for i, name := range path[1:] {
		if schema.IncompleteKind() != cue.StructKind {
			return 0, nil // a value, or one of several shapes: CUE says what is wrong
		}
		next, ok := fieldOf(schema, name)
		switch {
		case ok:
			schema = next
		case schema.Allows(cue.Str(name)):
			return 0, nil
		default:
			return i + 1, fieldNames(schema)
		}
	}
	return 0, nil
}

// fieldOf returns the schema of a field, also of one that is optional.
func fieldOf(schema cue.Value, name string) (cue.Value, bool) {
	v := schema.LookupPath(cue.MakePath(cue.Str(name)))
	if !v.Exists() {
		v = schema.LookupPath(cue.MakePath(cue.Str(name).Optional()))
	}
	return v, v.Exists()
}

func fieldNames(schema cue.Value) []string {
	var out []string
	it, err := schema.Fields(cue.Optional(true))
	for err == nil && it.Next() {
		out = append(out, it.Selector().Unquoted())
	}
	return out
}

// unknownPart looks at components.<component>.<part>.<member>.
func (v *view) unknownPart(path []string) (at int, known []string) {
	if len(path) < 2 {
		return 0, nil
	}
	if known, missing := v.missing(path[1], "components"); missing {
		return 1, known
	}
	if len(path) < 3 {
		return 0, nil
	}
	if parts := v.Parts(); !slices.Contains(parts, path[2]) {
		return 2, parts
	}
	if known, missing := v.missing(path[2], "components", path[1]); missing {
		return 2, known
	}
	if len(path) < 4 || path[2] != "objects" && path[2] != "outputs" {
		return 0, nil
	}
	if known, missing := v.missing(path[3], "components", path[1], path[2]); missing {
		return 3, known
	}
	return 0, nil
}

// unknownObject looks at live.<component>.<object>.
func (v *view) unknownObject(path []string) (at int, known []string) {
	if len(path) < 2 {
		return 0, nil
	}
	if known, missing := v.missing(path[1], "components"); missing {
		return 1, known
	}
	if len(path) < 3 {
		return 0, nil
	}
	if _, none := v.missing("objects", "components", path[1]); none {
		return 2, nil
	}
	if known, missing := v.missing(path[2], "components", path[1], "objects"); missing {
		return 2, known
	}
	return 0, nil
}

// unknownInput looks at inputs.<name>.<field>.
func (v *view) unknownInput(path []string) (at int, known []string) {
	if len(path) < 2 {
		return 0, nil
	}
	if known, missing := v.missing(path[1], "inputs"); missing {
		return 1, known
	}
	fields := []string{"object", "objects", "apiVersion", "kind", "name", "namespace", "selector"}
	if len(path) > 2 && !slices.Contains(fields, path[2]) {
		return 2, fields[:2]
	}
	return 0, nil
}
