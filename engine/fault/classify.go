package fault

import (
	"cuelang.org/go/cue"
)

// classify returns the code of the faults at a path that an error of v reports. It looks at the
// value that CUE made, and never at the text of the error, which changes between versions of CUE.
func classify(v cue.Value, path string, err error) Code {
	code := Invalid
	if cue.IsIncomplete(err) {
		code = Incomplete
	}
	below, ok := pathBelow(v, path)
	if !ok {
		return code
	}
	at := lookup(v, below)
	switch {
	case !at.Exists():
		if last := len(below) - 1; last >= 0 && Constraint(lookup(v, below[:last]), below[last]) == cue.RequiredConstraint {
			return Unset
		}
	case at.Err() == nil || cue.IsIncomplete(at.Err()):
		return Incomplete
	case isUnknown(v, below):
		return UnknownField
	default:
		return Invalid
	}
	return code
}

// pathBelow returns a path of an error from v on. It fails for what is not below v.
func pathBelow(v cue.Value, path string) ([]cue.Selector, bool) {
	if !v.Exists() {
		return nil, false
	}
	around, sels := v.Path().Selectors(), cue.ParsePath(path).Selectors()
	if len(sels) < len(around) {
		return nil, false
	}
	for i, sel := range around {
		if sel.String() != sels[i].String() {
			return nil, false
		}
	}
	return sels[len(around):], true
}

// lookup returns what is at a path, which may not exist.
func lookup(v cue.Value, path []cue.Selector) cue.Value {
	if len(path) == 0 || !v.Exists() {
		return v
	}
	return v.LookupPath(cue.MakePath(path...))
}

// Constraint returns whether a struct declares a field that is not set as a required or as an
// optional one, or 0 if it does not declare it.
func Constraint(around cue.Value, field cue.Selector) cue.SelectorType {
	if field.LabelType() != cue.StringLabel || !around.Exists() {
		return 0
	}
	// LookupPath also finds what any field would be.
	it, err := around.Fields(cue.Optional(true), cue.Hidden(true))
	for err == nil && it.Next() {
		if sel := it.Selector(); sel.LabelType() == cue.StringLabel && sel.Unquoted() == field.Unquoted() {
			return sel.ConstraintType()
		}
	}
	return 0
}

// isUnknown reports whether a closed part of a struct around the field at a path does not have the
// field, and nothing else is wrong with it. It looks at the parts that each struct is unified
// from, because CUE counts the field as one of the struct itself once it was added.
func isUnknown(v cue.Value, path []cue.Selector) bool {
	last := len(path) - 1
	if last < 0 || path[last].LabelType() != cue.StringLabel || !isSound(lookup(v, path)) {
		return false
	}
	for n := range path {
		for _, part := range parts(lookup(v, path[:n]), maxParts) {
			around := within(part, path[n:last])
			if around.Exists() && around.IncompleteKind() == cue.StructKind && !around.Allows(path[last]) {
				return true
			}
		}
	}
	return false
}

// isSound reports whether the values that a field is unified from are valid by themselves.
func isSound(field cue.Value) bool {
	op, args := field.Expr()
	if op == cue.NoOp {
		return true // it is written out
	}
	whole := args[0]
	for _, a := range args {
		if err := a.Err(); err != nil && !cue.IsIncomplete(err) {
			return false
		}
		whole = whole.Unify(a)
	}
	return op != cue.AndOp || whole.Validate() == nil
}

// maxParts bounds the depth to which a value is taken apart.
const maxParts = 8

// parts returns the values that a value is the unification of.
func parts(v cue.Value, depth int) []cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp || len(args) < 2 || depth == 0 {
		return []cue.Value{cue.Dereference(v)}
	}
	var out []cue.Value
	for _, a := range args {
		out = append(out, parts(a, depth-1)...)
	}
	return out
}

// within returns the value of a schema at a path, including optional fields and the elements of
// lists.
func within(schema cue.Value, path []cue.Selector) cue.Value {
	for _, sel := range path {
		next := schema.LookupPath(cue.MakePath(sel))
		if !next.Exists() && sel.LabelType() == cue.StringLabel {
			next = schema.LookupPath(cue.MakePath(sel.Optional()))
		}
		if !next.Exists() && sel.LabelType() == cue.IndexLabel {
			next = schema.LookupPath(cue.MakePath(cue.AnyIndex))
		}
		if !next.Exists() {
			return cue.Value{}
		}
		schema = next
	}
	return schema
}
