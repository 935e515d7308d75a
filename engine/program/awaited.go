package program

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"operetta.dev/engine/fault"
)

// What an expression waits for is found from the references in the text and from the data
// that there are, and not from what CUE says: where it stopped tells which reference of
// which expression it is, and the data tell how far that leads.

// awaited is a reference that leads nowhere, for now.
type awaited struct {
	// Reference is the chain up to the first name that is not there.
	Reference
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
func (p *Program) awaits(f fault.Fault) (awaited, bool) {
	for _, s := range p.index.selections[f.Origin] {
		for n := s.from; n <= len(s.path); n++ {
			if there, optional := exists(p.root(), s.path[:n]); !there {
				r := Reference{Path: slices.Clone(s.path[:n]), Position: s.position}
				return awaited{Reference: r, whole: s.path, optional: optional}, true
			}
		}
	}
	return awaited{}, false
}

// absent returns the reference without which a fault cannot be decided, or none.
func (p *Program) absent(f fault.Fault) Reference {
	a, _ := p.awaits(f)
	return a.Reference
}

// lacks notes a reference that leads to something missing, if it is one.
func (c *Component) lacks(r Reference) {
	if len(r.Path) > 0 && !slices.ContainsFunc(c.Absent, r.is) {
		c.Absent = append(c.Absent, r)
	}
}

// root returns the package as it is evaluated, or without a custom resource.
func (p *Program) root() cue.Value {
	if p.decisions != nil {
		return p.decisions.root
	}
	return p.static
}

// exists reports whether there is anything at a path, or else whether it leads to a field
// that is optional.
func exists(v cue.Value, path []string) (there, optional bool) {
	for _, name := range path {
		sel := label(name)
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

// A selectedName is a place in the text at which a name is selected: the reference that it is
// part of, and how long that is with the name.
type selectedName struct {
	path     []string
	from     int
	position fault.Position
}

// addSelections records where each name of a reference is selected.
func (x *index) addSelections(f found) {
	root, names := selectors(f.chain)
	names = names[:f.literal]
	from := len(f.Path) - len(names)
	for i, n := range append([]ast.Node{root}, names...) {
		at := fault.OriginOf(n.Pos())
		x.selections[at] = append(x.selections[at], selectedName{f.Path, max(from+i, 1), f.Position})
	}
}

// selectors returns the name at which a chain starts, and what is selected behind it, as it
// is written.
func selectors(e ast.Expr) (root ast.Node, names []ast.Node) {
	var all []ast.Node
	for {
		switch n := e.(type) {
		case *ast.ParenExpr:
			e = n.X
		case *ast.SelectorExpr:
			all, e = append(all, n.Sel), n.X
		case *ast.IndexExpr:
			all, e = append(all, n.Index), n.X
		default:
			slices.Reverse(all)
			return e, all
		}
	}
}
