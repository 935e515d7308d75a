package syntax

import (
	"maps"
	"slices"
)

// A typePart is what a type looks at of a value.
type typePart struct {
	// whole is true if that may be anything.
	whole bool
	// scalar is true if the value is neither a struct nor a list.
	scalar bool
	// closed is true if a struct may have no other fields.
	closed bool
	fields map[string]*typePart
	// each is for every other field, and for every element.
	each *typePart
}

// readings returns the readings of a part of a value that is at a path.
func (p *typePart) readings(path []string) []Reading {
	if p.whole || p.scalar && len(p.fields) == 0 && p.each == nil {
		return []Reading{{Path: path, Extent: Whole}}
	}
	out := []Reading{{Path: path, Extent: Presence}}
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		out = append(out, p.fields[name].readings(slices.Concat(path, []string{name}))...)
	}
	if p.each != nil {
		out = append(out, p.each.readings(slices.Concat(path, []string{Each}))...)
	}
	return out
}

// add adds a field, or Each.
func (p *typePart) add(name string, part *typePart) {
	if name == Each {
		p.each = mergedParts(p.each, part, unified)
		return
	}
	if p.fields == nil {
		p.fields = map[string]*typePart{}
	}
	p.fields[name] = mergedParts(p.fields[name], part, unified)
}

// mergedParts returns one of two parts if the other is nil, and what a function makes of them otherwise.
func mergedParts(a, b *typePart, of func(a, b *typePart) *typePart) *typePart {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return of(a, b)
}

// unified returns the part of a value that has to fit two types. If one of them is closed, the value has no
// other fields.
func unified(a, b *typePart) *typePart {
	if a.whole {
		a, b = b, a
	}
	if b.whole && a.closed && !a.scalar {
		return a.wholeBelow()
	}
	out := joinedParts(a, b, unified)
	out.closed = a.closed || b.closed
	return out
}

// disjoined returns the part of a value that has to fit one of two types.
func disjoined(a, b *typePart) *typePart {
	out := joinedParts(a, b, disjoined)
	out.closed = a.closed && b.closed
	out.whole = out.whole || a.excludesMore(b) || b.excludesMore(a)
	return out
}

// excludesMore reports whether a value may fit another type and not this one because of a field that neither names:
// then such a field decides between them.
func (p *typePart) excludesMore(other *typePart) bool {
	if p.scalar || other.scalar || other.closed {
		return false
	}
	if p.closed || p.each != nil && other.each == nil && p.each.holdsClosed() {
		return true
	}
	for name, field := range p.fields {
		if other.fields[name] == nil && field.holdsClosed() {
			return true
		}
	}
	return false
}

// wholeBelow returns a closed type with anything in its fields: something else looks at them, and at no others.
func (p *typePart) wholeBelow() *typePart {
	out := &typePart{closed: p.closed}
	for name := range p.fields {
		out.add(name, &typePart{whole: true})
	}
	if p.each != nil {
		out.each = &typePart{whole: true}
	}
	return out
}

// joinedParts returns what either of two types looks at.
func joinedParts(a, b *typePart, of func(a, b *typePart) *typePart) *typePart {
	out := &typePart{whole: a.whole || b.whole, scalar: a.scalar || b.scalar, each: mergedParts(a.each, b.each, of), fields: maps.Clone(a.fields)}
	if a.scalar != b.scalar && (!a.closed || !b.closed) {
		out.whole = true // an error may say what the struct is
	}
	for name, part := range b.fields {
		if out.fields == nil {
			out.fields = map[string]*typePart{}
		}
		out.fields[name] = mergedParts(out.fields[name], part, of)
	}
	return out
}

// makeOpenWhole makes open structs whole, because something may look at any field of them.
func (p *typePart) makeOpenWhole() {
	p.whole = p.whole || !p.closed
	for _, field := range p.fields {
		field.makeOpenWhole()
	}
	if p.each != nil {
		p.each.makeOpenWhole()
	}
}

// holdsClosed reports whether a struct in a part is closed.
func (p *typePart) holdsClosed() bool {
	if p.closed && !p.scalar || p.each != nil && p.each.holdsClosed() {
		return true
	}
	for _, field := range p.fields {
		if field.holdsClosed() {
			return true
		}
	}
	return false
}
