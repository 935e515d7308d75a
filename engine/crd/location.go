package crd

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// location is a position in the schema. Locations are values: a child never changes the
// location of its parent.
type location struct {
	path  string
	pos   token.Pos
	depth int
	// enclosing are the struct literals around this location, outermost first. A reference to one
	// of their fields refers to user input, and a literal that is in its own list is a recursive
	// definition.
	enclosing []enclosure
	// atomic is true within a list whose elements have no identity. The API server cannot
	// compare an element with its old value there, so it refuses transition rules.
	atomic bool
	// conditions are the comprehensions of the struct around it that become rules, and literals those of that struct.
	conditions []sourceRange
	literals   []*ast.StructLit
}

// enclosure is a struct literal, and the location at which the generator entered it.
type enclosure struct {
	literal *ast.StructLit
	path    string
	pos     token.Pos
}

func root(path string) location { return location{path: path} }

// field returns the location of a field of the struct at l.
func (l location) field(name string) location { return l.child("." + cue.Str(name).String()) }

// values returns the location of the values of the map at l.
func (l location) values() location { return l.child(".[string]") }

// elements returns the location of the elements of the list at l.
func (l location) elements() location { return l.child(".[_]") }

func (l location) child(label string) location {
	l.path += label
	l.depth++
	l.conditions, l.literals = nil, nil
	return l
}

// positionedAt returns l with the position of v, if v has one.
func (l location) positionedAt(v cue.Value) location {
	if pos := v.Pos(); pos.IsValid() {
		l.pos = pos
	}
	return l
}

// enclosedBy returns l inside of more struct literals.
func (l location) enclosedBy(literals []*ast.StructLit) location {
	around := slices.Clip(l.enclosing)
	for _, literal := range literals {
		around = append(around, enclosure{literal, l.path, l.pos})
	}
	l.enclosing = around
	return l
}

// occurrencesOf returns the enclosures of l that are a literal, outermost first.
func (l location) occurrencesOf(literal *ast.StructLit) []enclosure {
	var found []enclosure
	for _, e := range l.enclosing {
		if e.literal == literal {
			found = append(found, e)
		}
	}
	return found
}
