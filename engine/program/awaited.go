package program

import (
	"slices"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// awaited is a reference that leads nowhere, for now.
//
// It is found from the references in the text and from the data, and not from what CUE
// says: the place at which CUE stopped tells which reference of which expression it is,
// and the data tell how far that leads.
type awaited struct {
	// Reference is the chain up to the first name that is not there.
	syntax.Reference
	// whole is all of the chain.
	whole []string
	// optional says that the name is of an optional field that nothing sets.
	optional bool
}

// String says what is awaited, for a person.
func (a awaited) String() string {
	if a.optional {
		return a.Reference.String() + notSet
	}
	return a.Reference.String() + notThere
}

// notThere says of a reference that it leads nowhere, for now.
const notThere = " is not there yet"

// notSet says of a reference that it leads to an optional field that nothing sets.
const notSet = " is optional, and not set"

// awaits returns the reference without which a fault cannot be decided.
func (e *evaluator) awaits(f fault.Fault) (awaited, bool) {
	for _, s := range e.index.SelectionsAt(f.Origin) {
		for n := s.Length; n <= len(s.Path); n++ {
			if there, optional := exists(e.root, s.Path[:n]); !there {
				r := syntax.Reference{Path: slices.Clone(s.Path[:n]), Position: s.Position}
				return awaited{Reference: r, whole: s.Path, optional: optional}, true
			}
		}
	}
	return awaited{}, false
}

// absent returns the reference without which a fault cannot be decided, or none.
func (e *evaluator) absent(f fault.Fault) syntax.Reference {
	a, _ := e.awaits(f)
	return a.Reference
}

// lacks notes a reference that leads to something missing, if it is one.
func (c *Component) lacks(r syntax.Reference) {
	if len(r.Path) > 0 && !slices.ContainsFunc(c.Absent, r.Is) {
		c.Absent = append(c.Absent, r)
	}
}

// exists reports whether there is anything at a path, or else whether the path leads to an
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

// nameOf returns the name in a selector. One that is no name, as of a text that is no
// path, is returned as it is written.
func nameOf(sel cue.Selector) string {
	if sel.LabelType() == cue.StringLabel {
		return sel.Unquoted()
	}
	return sel.String()
}
