package vet

import (
	"slices"

	"cuelang.org/go/cue"
	"operetta.dev/engine/program/syntax"
)

// maxDepth bounds the walk of a schema that refers to itself.
const maxDepth = 12

// fieldOf returns the schema of a field, which may be optional. The result does not exist if
// the schema does not declare the field.
func fieldOf(schema cue.Value, name string) cue.Value {
	if v := schema.LookupPath(cue.MakePath(cue.Str(name))); v.Exists() {
		return v
	}
	return schema.LookupPath(cue.MakePath(cue.Str(name).Optional()))
}

// members returns the schemas of the fields, map values and list elements of a schema.
func members(schema cue.Value) []cue.Value {
	var out []cue.Value
	for _, each := range []cue.Selector{cue.AnyIndex, cue.AnyString} {
		if m := schema.LookupPath(cue.MakePath(each)); m.Exists() {
			out = append(out, m)
		}
	}
	it, err := schema.Fields(cue.Optional(true))
	for err == nil && it.Next() {
		out = append(out, it.Value())
	}
	return out
}

// eachType calls a function with a schema and with those in it, the outer ones first.
func eachType(schema cue.Value, depth int, f func(cue.Value)) {
	if !schema.Exists() || depth > maxDepth {
		return
	}
	f(schema)
	if isScalar(schema) {
		return
	}
	for _, m := range members(schema) {
		eachType(m, depth+1, f)
	}
}

func isScalar(schema cue.Value) bool {
	return schema.IncompleteKind()&(cue.StructKind|cue.ListKind) == 0
}

// isAny reports whether a schema accepts any value.
func isAny(schema cue.Value) bool { return schema.IncompleteKind() == cue.TopKind }

// isOpen reports whether a value at a path of a schema may be something that the schema does not
// list. Numbers name nothing, so they are never open; booleans are only if they matter.
func isOpen(schema cue.Value, path []string, booleans bool, depth int) bool {
	switch {
	case depth > maxDepth:
		return true
	case len(path) > 0 && path[0] == syntax.Each:
		return slices.ContainsFunc(members(schema), func(m cue.Value) bool { return isOpen(m, path[1:], booleans, depth+1) }) || isAny(schema)
	case len(path) > 0:
		if next := fieldOf(schema, path[0]); next.Exists() {
			return isOpen(next, path[1:], booleans, depth+1)
		}
		return schema.Allows(cue.Str(path[0])) && schema.IncompleteKind()&cue.StructKind != 0
	}
	switch kind := schema.IncompleteKind(); {
	case isAny(schema):
		return true
	case kind&(cue.StructKind|cue.ListKind) != 0:
		return schema.Allows(cue.AnyString) || slices.ContainsFunc(members(schema), func(m cue.Value) bool { return isOpen(m, nil, booleans, depth+1) })
	case kind&(cue.StringKind|cue.BytesKind) != 0:
		return !isEnumeration(schema)
	default:
		return booleans && kind&cue.BoolKind != 0 && !schema.IsConcrete() || booleans && kind == cue.BoolKind && !isEnumeration(schema)
	}
}

// isEnumeration reports whether a schema lists the values that it accepts.
func isEnumeration(schema cue.Value) bool {
	op, args := schema.Expr()
	switch op {
	case cue.OrOp:
		return !slices.ContainsFunc(args, func(a cue.Value) bool { return !isEnumeration(a) })
	case cue.AndOp:
		return slices.ContainsFunc(args, isEnumeration)
	case cue.SelectorOp, cue.IndexOp:
		to := cue.Dereference(schema)
		return to != schema && isEnumeration(to)
	case cue.NoOp:
		if len(args) == 1 && args[0] != schema {
			return isEnumeration(args[0])
		}
		_, defaults := schema.Default()
		return schema.IsConcrete() && !defaults
	}
	return false
}

// textsAt returns the strings that a schema lists at a path.
func textsAt(schema cue.Value, path []string, depth int) []string {
	var next []cue.Value
	op, args := schema.Expr()
	switch to := cue.Dereference(schema); {
	case depth > maxDepth:
		return nil
	case len(path) > 0 && path[0] == syntax.Each:
		next, path = members(schema), path[1:]
	case len(path) > 0:
		next, path = []cue.Value{fieldOf(schema, path[0])}, path[1:]
	case op == cue.OrOp, op == cue.AndOp, op == cue.NoOp && len(args) == 1 && args[0] != schema:
		next = args
	case to != schema:
		next = []cue.Value{to}
	default:
		if text, err := schema.String(); err == nil {
			return []string{text}
		}
	}
	var out []string
	for _, v := range next {
		out = append(out, textsAt(v, path, depth+1)...)
	}
	return out
}
