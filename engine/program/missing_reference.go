package program

import (
	"slices"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// missingReference is a reference to something that does not exist yet.
//
// It is found by the position at which CUE stopped, which identifies the reference, and by the
// data, which show how much of its path exists. CUE's message is not used.
type missingReference struct {
	// Reference is the chain up to the first name that does not exist.
	syntax.Reference
	// whole is the path of the whole chain.
	whole []string
	// optional is true if the name is that of an optional field that nothing sets.
	optional bool
}

// String returns the reference and why it is missing, for a message.
func (a missingReference) String() string {
	if a.optional {
		return a.Reference.String() + notSet
	}
	return a.Reference.String() + notThere
}

// notThere is the end of a message about a reference to something that does not exist yet.
const notThere = " is not there yet"

// notSet is the end of a message about a reference to an optional field that nothing sets.
const notSet = " is optional, and not set"

// missingReference returns the missing reference that causes an incomplete fault, and whether
// there is one.
func (e *evaluator) missingReference(f fault.Fault) (missingReference, bool) {
	if a, ok := missingReferenceOf(f, e.index, e.root); ok {
		return a, true
	}
	return e.computedReference(f)
}

// computedReference returns the missing reference with a computed name that causes an incomplete fault. Only the evaluated value
// tells the name.
func (e *evaluator) computedReference(f fault.Fault) (missingReference, bool) {
	if f.Code != fault.Incomplete || !e.index.SelectsComputed(f.Origin) {
		return missingReference{}, false
	}
	text, ok := firstMissing(e.root.LookupPath(cue.ParsePath(f.Path)), maxOperators)
	if !ok {
		return missingReference{}, false
	}
	path := selectorNames(cue.ParsePath(text).Selectors())
	return missingReference{Reference: syntax.Reference{Path: path, Position: f.Position}, whole: path}, true
}

// maxOperators bounds how deep an expression is searched for a reference.
const maxOperators = 4

// missingReferenceOf returns the missing reference that causes an incomplete fault of an evaluated package.
func missingReferenceOf(f fault.Fault, x *syntax.Index, root cue.Value) (missingReference, bool) {
	for _, s := range x.SelectionsAt(f.Origin) {
		for n := s.Length; n <= len(s.Path); n++ {
			if there, optional := exists(root, s.Path[:n]); !there {
				r := syntax.Reference{Path: slices.Clone(s.Path[:n]), Position: s.Position}
				return missingReference{Reference: r, whole: s.Path, optional: optional}, true
			}
		}
	}
	return missingReference{}, false
}

// absent returns the missing reference that causes an incomplete fault, or the zero value.
func (e *evaluator) absent(f fault.Fault) syntax.Reference {
	a, _ := e.missingReference(f)
	return a.Reference
}

// noteAbsent records a missing reference, unless it is the zero value or known already.
func (c *Component) noteAbsent(r syntax.Reference) {
	if len(r.Path) > 0 && !slices.ContainsFunc(c.Absent, r.Is) {
		c.Absent = append(c.Absent, r)
	}
}

// exists reports whether there is a value at a path and, if not, whether the path leads to an
// optional field.
func exists(v cue.Value, path []string) (there, optional bool) {
	for _, name := range path {
		sel := syntax.Selector(name)
		next := v.LookupPath(cue.MakePath(sel))
		if !next.Exists() {
			v, _ = v.Default()
			next = v.LookupPath(cue.MakePath(sel))
		}
		if !next.Exists() {
			return false, fault.Constraint(v, sel) == cue.OptionalConstraint
		}
		v = next
	}
	return true, false
}

// nameOf returns the name in a selector. A selector that is not a valid name is returned
// verbatim.
func nameOf(sel cue.Selector) string {
	if sel.LabelType() == cue.StringLabel {
		return sel.Unquoted()
	}
	return sel.String()
}
