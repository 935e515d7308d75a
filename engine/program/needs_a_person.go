package program

import (
	"slices"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// Most missing values appear without a person: a live object, an input, a field that the cluster
// sets. Two do not: a field of the spec that nobody has set, and a field that the package does
// not write for an object. Only a person can fix these two, so both are reported.

// unsetSpecField returns the field of the spec that a fault is about, if the custom resource alone
// decides that the component needs it. Under a condition that depends on live objects or inputs,
// the component may stop needing it.
func (e *evaluator) unsetSpecField(f fault.Fault) (string, bool) {
	a, ok := e.missingReference(f)
	if ok && len(a.Path) > 2 && a.Path[0] == "cr" && a.Path[1] == "spec" && e.index.Needs(a.Reference) {
		return syntax.Reference{Path: a.Path[1:]}.String(), true
	}
	return "", false
}

// unwrittenField turns a fault about a field that no object will ever have, or about a name that an imported
// package does not have, into a fault of the package.
func (e *evaluator) unwrittenField(f fault.Fault) (fault.Fault, bool) {
	if u, is := e.static.unknown[f.Origin]; is {
		f.Code, f.Origin = fault.Invalid, fault.TokenPosition{}
		f.Message, f.Hint = unknownName(u)
		return f, true
	}
	a, ok := e.missingReference(f)
	if !ok {
		return f, false
	}
	at, known := e.static.FirstUnwritten(a.whole)
	if at == 0 {
		return f, false
	}
	f.Code, f.Origin = fault.Invalid, fault.TokenPosition{}
	f.Message = syntax.Reference{Path: a.whole[:at+1]}.String() + " does not exist"
	f.Hint = HintAmong(a.whole[at], known)
	return f, true
}

// UnknownNames returns a fault for each name that the package, or one that it imports, selects from an imported
// package that does not have it, by position.
func (s *Static) UnknownNames() fault.Faults {
	var out fault.Faults
	for _, u := range s.unknown {
		f := fault.Fault{Position: u.Position}
		f.Message, f.Hint = unknownName(u)
		out = append(out, f)
	}
	return out.Sorted()
}

// unknownName returns what to say of a name that an imported package does not have.
func unknownName(u syntax.UnknownName) (message, hint string) {
	message = u.Expression + " does not exist"
	_, near := ClosestName(u.Name, u.Known)
	if near || len(u.Known) <= listedNames {
		return message, HintAmong(u.Name, u.Known)
	}
	return message, "it is none of the names in " + u.Import
}

// listedNames is how many names a hint lists at most; a package of Kubernetes types has hundreds.
const listedNames = 20

// FirstUnwritten returns the index of the first name of a path that the package does not write for an
// object, and the names that it writes in that place. The index is 0 if nothing is missing.
// A live object may have more fields than the package writes: there, only a name that nearly
// matches a written one counts, and only in the data of a ConfigMap or Secret, to which the
// cluster adds nothing.
func (s *Static) FirstUnwritten(path []string) (at int, known []string) {
	switch {
	case len(path) > 4 && path[0] == "components" && path[2] == "objects":
		if at, known := s.index.FirstUnwritten(path[1], path[3:]); at > 0 && !s.contract.objectHas(path[4:at+4]) {
			return at + 3, known
		}
	case len(path) > 4 && path[0] == "live" && s.index.HoldsData(path[1], path[2]) && slices.Contains([]string{"data", "binaryData", "stringData"}, path[3]):
		if at, known := s.index.FirstUnwritten(path[1], path[2:]); at > 1 {
			if _, near := ClosestName(path[at+2], known); near {
				return at + 2, known
			}
		}
	}
	return 0, nil
}

// objectHas reports whether every object may have a field.
func (c contract) objectHas(path []string) bool {
	object := c.value.LookupPath(cue.MakePath(cue.Def("#Object")))
	for _, name := range path {
		next := object.LookupPath(cue.MakePath(cue.Str(name).Required()))
		if !next.Exists() {
			next = object.LookupPath(cue.MakePath(cue.Str(name).Optional()))
		}
		if !next.Exists() {
			return false
		}
		object = next
	}
	return true
}
