package program

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// Most of what is not there yet comes by itself: a live object, an input, a field that
// the cluster fills. Two things do not: a field of the spec that nobody has set, and a
// field that an object does not have by what the package writes for it. To wait for
// them is to wait for a person, who has to know.

// unset returns the field of the spec that a fault is about, if the component needs it by
// what the resource says alone: under a condition that rests on more, the need may pass.
func (p *Program) unset(f fault.Fault) (string, bool) {
	a, ok := p.awaits(f)
	if ok && len(a.Path) > 2 && a.Path[0] == "cr" && a.Path[1] == "spec" && p.index.needs(a.Reference) {
		return Reference{Path: a.Path[1:]}.String(), true
	}
	return "", false
}

// misspelt returns a fault as one of the package, if it is about a field that no object
// will ever have.
func (p *Program) misspelt(f fault.Fault) (fault.Fault, bool) {
	a, ok := p.awaits(f)
	if !ok {
		return f, false
	}
	at, known := p.Lacks(a.whole)
	if at == 0 {
		return f, false
	}
	f.Code, f.Origin = fault.Invalid, fault.Origin{}
	f.Message = Reference{Path: a.whole[:at+1]}.String() + " does not exist"
	f.Hint = HintAmong(a.whole[at], known)
	return f, true
}

// Lacks returns the index of the first name of a path into an object of the package that
// the object does not have, by all that is written for it, and the names beside it; 0 is
// for none. A live object may have more than is written: there it has to be one that
// nothing but a person or another program gives fields, and the name one that is nearly
// that of a field that is written.
func (p *Program) Lacks(path []string) (at int, known []string) {
	switch {
	case len(path) > 4 && path[0] == "components" && path[2] == "objects":
		if at, known := p.index.lacks(path[1], path[3:]); at > 0 && !p.contractHas(path[4:at+4]) {
			return at + 3, known
		}
	case len(path) > 4 && path[0] == "live" && p.index.holdsData(path[1], path[2]) && slices.Contains([]string{"data", "binaryData", "stringData"}, path[3]):
		if at, known := p.index.lacks(path[1], path[2:]); at > 1 {
			if _, near := Nearest(path[at+2], known); near {
				return at + 2, known
			}
		}
	}
	return 0, nil
}

// contractHas reports whether every object may have a field.
func (p *Program) contractHas(path []string) bool {
	object := p.contract.LookupPath(cue.MakePath(cue.Def("#Object")))
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

// holdsData reports whether an object is, by the text, of a kind that the cluster adds
// nothing to the data of.
func (x *index) holdsData(component, object string) bool {
	at, _ := x.at(x.bodies[component], "objects", object, "kind")
	return len(at) > 0 && !slices.ContainsFunc(at, func(m member) bool {
		lit, ok := m.value.(*ast.BasicLit)
		return !ok || lit.Value != `"ConfigMap"` && lit.Value != `"Secret"`
	})
}

// lacks returns the index of the first name of an object's path that is not written for
// it; path begins with the object's name. It is 0 when the text does not show all.
func (x *index) lacks(component string, path []string) (at int, known []string) {
	if len(x.anyBody) > 0 || x.opaque {
		return 0, nil
	}
	within, all := x.at(x.bodies[component], "objects")
	for i, name := range path {
		next, shown, names := x.membersOf(within, name)
		switch {
		case !all || !shown:
			return 0, nil
		case len(next) == 0 && i > 0:
			return i, names
		case len(next) == 0:
			return 0, nil // there is no such object, which the check says
		}
		within = next
	}
	return 0, nil
}

// at returns what is written at a path below some members, and whether that is all.
func (x *index) at(within []member, path ...string) ([]member, bool) {
	for _, name := range path {
		next, all, _ := x.membersOf(within, name)
		if !all || len(next) == 0 {
			return next, false
		}
		within = next
	}
	return within, true
}

// membersOf returns the members of a name below others, also those that templates bring,
// whether the text shows all members, and their names.
func (x *index) membersOf(within []member, name string) (out []member, all bool, names []string) {
	all = len(within) > 0
	var look func(m member, depth int)
	look = func(m member, depth int) {
		switch {
		case depth > maxAliases:
			all = false
		case m.kind == named:
			if m.name == name {
				out = append(out, m)
			}
			if isRegular(m.name) && !slices.Contains(names, m.name) {
				names = append(names, m.name)
			}
		case m.kind == embedded && m.value != nil:
			shown := x.standsFor(m.value, depth)
			if len(shown) == 0 && !x.isContract(m.value) {
				all = false
			}
			for _, at := range shown {
				eachMember(at.value, nil, func(d member) { look(d, depth+1) })
			}
		default:
			all = false // computed names, patterns, three dots
		}
	}
	for _, m := range within {
		eachMember(m.value, nil, func(d member) { look(d, 0) })
	}
	return out, all, names
}

// needs reports whether a component comes to a reference, whatever live objects and inputs
// say. One that has another name where it is used is asked for by its path.
func (x *index) needs(r Reference) bool {
	if needed, known := x.needed[placeOf(r)]; known {
		return needed
	}
	return x.needed[placeOf(Reference{Path: r.Path})]
}

// addNeeded records the fields of the spec that a component refers to, whatever live
// objects and inputs say.
func (x *index) addNeeded(all []found) {
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
func (x *index) addReaders(component string, all []found) {
	for _, f := range all {
		if len(f.Path) > 1 && f.Path[0] == "inputs" && !slices.Contains(x.readBy[f.Path[1]], component) {
			x.readBy[f.Path[1]] = append(x.readBy[f.Path[1]], component)
		}
	}
}

// readers returns the components that refer to an input, or none if that is not all or
// their names are computed.
func (x *index) readers(input string) []string {
	by := x.readBy[input]
	if x.opaque || x.fields["hooks"] != nil || slices.Contains(by, "") {
		return nil
	}
	return by
}

// placeOf returns what tells a reference from all others.
func placeOf(r Reference) string { return fmt.Sprint(r.Position, " ", r.Path) }

// restsOnMore reports whether a clause rests on more than the custom resource.
func (x *index) restsOnMore(c ast.Clause) bool {
	if more, known := x.clauses[c]; known {
		return more
	}
	x.clauses[c] = true // while it is looked at
	r := newReferences(x)
	r.follow = true
	r.walk(c)
	x.clauses[c] = r.beyond || slices.ContainsFunc(r.found, func(f found) bool { return f.Path[0] != "cr" })
	return x.clauses[c]
}
