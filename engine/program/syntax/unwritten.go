package syntax

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// HoldsData reports whether the text shows that an object is a ConfigMap or a Secret. The cluster
// does not add to the data of these kinds.
func (x *Index) HoldsData(component, object string) bool {
	at, _ := x.within(x.bodies[component], "objects", object, "kind")
	return len(at) > 0 && !slices.ContainsFunc(at, func(m Member) bool {
		lit, ok := m.value.(*ast.BasicLit)
		return !ok || lit.Value != `"ConfigMap"` && lit.Value != `"Secret"`
	})
}

// FirstUnwritten returns the index of the first name on a path that the package does not write for
// an object, and the names that it writes in that place. The path begins with the object's name.
// The index is 0 if nothing is missing, or if the text does not show all names.
func (x *Index) FirstUnwritten(component string, path []string) (at int, known []string) {
	if len(x.anyBody) > 0 || x.opaque {
		return 0, nil
	}
	within, all := x.within(x.bodies[component], "objects")
	for i, name := range path {
		next, shown, names := x.membersOf(within, name)
		switch {
		case !all || !shown:
			return 0, nil
		case len(next) == 0 && i > 0:
			return i, names
		case len(next) == 0:
			return 0, nil // the check of references reports a missing object
		}
		within = next
	}
	return 0, nil
}

// within returns the members at a path below others, and whether the text shows all of them.
func (x *names) within(within []Member, path ...string) ([]Member, bool) {
	for _, name := range path {
		next, all, _ := x.membersOf(within, name)
		if !all || len(next) == 0 {
			return next, false
		}
		within = next
	}
	return within, true
}

// membersOf returns the members with a name below others, also those of templates, whether the
// text shows all members, and their names.
func (x *names) membersOf(within []Member, name string) (out []Member, all bool, names []string) {
	found := x.below(within, name, 0)
	foreign := slices.ContainsFunc(found.hidden, func(m Member) bool { return !isContract(m.value) })
	return found.named, len(within) > 0 && !found.open && !foreign, found.names
}

// Needs reports whether a component always evaluates a reference, whatever the live objects and
// inputs are. An aliased reference is looked up by its path.
func (x *Index) Needs(r Reference) bool {
	if needed, known := x.needed[placeOf(r)]; known {
		return needed
	}
	return x.needed[placeOf(Reference{Path: r.Path})]
}

// addNeeded records the fields of the spec that a component refers to, and whether it always
// evaluates the reference, whatever the live objects and inputs are.
func (x *reader) addNeeded(all []found) {
	for _, f := range all {
		if len(f.Path) < 3 || f.Path[0] != "cr" {
			continue
		}
		for n := 3; n <= len(f.Path); n++ {
			for _, at := range []fault.Position{f.Position, {}} {
				key := placeOf(Reference{Path: f.Path[:n], Position: at})
				before, known := x.needed[key]
				x.needed[key] = !f.beyondCR && (before || !known)
			}
		}
	}
}

// addReaders records which inputs a component refers to.
func (x *reader) addReaders(component string, all []found) {
	for _, f := range all {
		if len(f.Path) < 2 || f.Path[0] != "inputs" {
			continue
		}
		by := x.readBy[f.Path[1]]
		if at, known := slices.BinarySearch(by, component); !known {
			x.readBy[f.Path[1]] = slices.Insert(by, at, component)
		}
	}
}

// Readers returns the components that refer to an input, by name, or nil if there may be others or if
// their names are computed.
func (x *Index) Readers(input string) []string {
	by := x.readBy[input]
	if x.opaque || x.fields["hooks"] != nil || slices.Contains(by, "") {
		return nil
	}
	return by
}

// placeOf returns a key that identifies a reference.
func placeOf(r Reference) string { return fmt.Sprint(r.Position, " ", r.Path) }
