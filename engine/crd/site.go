package crd

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// site is where the generator is in the schema. Sites are values: a child never changes
// the site of its parent.
type site struct {
	path  string
	pos   token.Pos
	depth int
	// around are the struct literals around this site, outermost first. A reference to one of their
	// fields is a reference to what the user of the CRD will fill in, and one that
	// contains itself is a recursive definition.
	around []enclosure
	// atomic is true within a list whose elements have no identity. There is no old
	// element to compare a new one with, so the API server refuses transition rules.
	atomic bool
}

// enclosure is a struct literal, and the site at which it was entered.
type enclosure struct {
	literal *ast.StructLit
	path    string
	pos     token.Pos
}

func root(path string) site { return site{path: path} }

// field is the site of a field of the struct at s.
func (s site) field(name string) site { return s.child("." + cue.Str(name).String()) }

// values is the site of the values of the map at s.
func (s site) values() site { return s.child(".[string]") }

// elements is the site of the elements of the list at s.
func (s site) elements() site { return s.child(".[_]") }

func (s site) child(label string) site {
	s.path += label
	s.depth++
	return s
}

// in is s at the position of v, if v has one.
func (s site) in(v cue.Value) site {
	if pos := v.Pos(); pos.IsValid() {
		s.pos = pos
	}
	return s
}

// within is s inside of more struct literals.
func (s site) within(literals []*ast.StructLit) site {
	around := slices.Clip(s.around)
	for _, l := range literals {
		around = append(around, enclosure{l, s.path, s.pos})
	}
	s.around = around
	return s
}

// inside returns where s is within a literal, outermost first.
func (s site) inside(literal *ast.StructLit) []enclosure {
	var found []enclosure
	for _, e := range s.around {
		if e.literal == literal {
			found = append(found, e)
		}
	}
	return found
}
