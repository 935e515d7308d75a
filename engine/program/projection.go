package program

import (
	"maps"
	"slices"

	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// A projection is the part of some data that a package reads: all of it, or the fields and elements that
// have a projection of their own. The zero value is the part that says only that there is something, and
// of which kind.
//
// A package reads few fields of a live object or of an input. The others do not enter CUE:
// they would cost time, their keys would stay in CUE's process-wide table of labels for good,
// and equal evaluations would look different when such a field changes.
type projection struct {
	all    bool
	fields map[string]*projection
	// names are those of the fields, sorted, once the projection is complete.
	names []string
	// each is the part that is read of any element and of any field that is not in fields, or nil. With it,
	// no element and no field is left out.
	each *projection
}

// project returns the part below a root that the package reads or declares itself. If
// another package adds fields to the root, that is all of it, since those may refer to anything.
func project(x *syntax.Index, root string) *projection {
	out := projectReadings(x, root, x.Readings())
	out.all = out.all || x.Foreign()
	if root == "cr" {
		// What the author forbids in a resource has to be seen.
		for _, path := range x.Declared(root) {
			out.add(path, syntax.Whole)
		}
	}
	out.complete()
	return out
}

// add adds what is read at a path.
func (p *projection) add(path []string, extent syntax.Extent) {
	switch {
	case len(path) > 0:
		p.child(path[0]).add(path[1:], extent)
	case extent == syntax.Whole:
		p.all = true
	case extent == syntax.Members:
		p.child(syntax.Each)
	}
}

// child returns the projection of a field, or of each, which is made if there is none.
func (p *projection) child(name string) *projection {
	if name == syntax.Each {
		if p.each == nil {
			p.each = &projection{}
		}
		return p.each
	}
	if p.fields == nil {
		p.fields = map[string]*projection{}
	}
	if p.fields[name] == nil {
		p.fields[name] = &projection{}
	}
	return p.fields[name]
}

// complete adds to every field what is read of each, and sorts the fields.
func (p *projection) complete() {
	p.names = slices.Sorted(maps.Keys(p.fields))
	for _, field := range p.fields {
		if p.each != nil {
			field.merge(p.each)
		}
		field.complete()
	}
	if p.each != nil {
		p.each.complete()
	}
}

// merge adds what is in another projection.
func (p *projection) merge(o *projection) {
	p.all = p.all || o.all
	if o.each != nil {
		p.child(syntax.Each).merge(o.each)
	}
	for name, field := range o.fields {
		p.child(name).merge(field)
	}
}

// below returns the projection of a field of a field, or nil.
func (p *projection) below(path ...string) *projection {
	for _, name := range path {
		if p == nil {
			return nil
		}
		p = p.field(name)
	}
	return p
}

// field returns the projection of a field, or nil if the package does not refer to it.
func (p *projection) field(name string) *projection {
	if p.all {
		return p
	}
	if field, ok := p.fields[name]; ok {
		return field
	}
	return p.each
}

// of returns the part of a value that the package reads.
func (p *projection) of(v any) any {
	if p.all {
		return normalizeNumbers(v)
	}
	switch v := v.(type) {
	case map[string]any:
		return p.ofFields(v)
	case []any:
		if p.eachOnly() {
			return p.ofElements(v)
		}
	}
	return normalizeNumbers(v)
}

func (p *projection) ofElements(l []any) []any {
	if p.each == nil {
		return []any{}
	}
	out := make([]any, len(l))
	for i, e := range l {
		out[i] = p.each.of(e)
	}
	return out
}

func (p *projection) ofFields(m map[string]any) map[string]any {
	if p.each != nil {
		out := make(map[string]any, len(m))
		for name, inner := range m {
			out[name] = p.field(name).of(inner)
		}
		return out
	}
	out := make(map[string]any, len(p.fields))
	for name, field := range p.fields {
		if inner, ok := m[name]; ok {
			out[name] = field.of(inner)
		}
	}
	return out
}

// shape writes the shape of the part of a value.
func (p *projection) shape(s *template.Shaper, v any, pins template.Pins) {
	switch v := v.(type) {
	case map[string]any:
		if p.all {
			break
		}
		s.Begin()
		for _, name := range p.namesIn(v) {
			if inner, ok := v[name]; ok {
				s.Field(name)
				p.field(name).shape(s, inner, pins.Below(name))
			}
		}
		s.End()
		return
	case []any:
		if !p.eachOnly() {
			break
		}
		if p.each == nil {
			s.Elements(0)
			return
		}
		s.Elements(len(v))
		for _, e := range v {
			p.each.shape(s, e, pins.Below(template.Anywhere))
		}
		return
	}
	s.Value(v, pins)
}

// count adds how much there is of the part of a value.
func (p *projection) count(a *amount, v any, depth int) {
	switch v := v.(type) {
	case map[string]any:
		if p.all {
			break
		}
		n := 0
		for _, name := range p.namesIn(v) {
			if inner, ok := v[name]; ok {
				n++
				a.bytes += len(name)
				p.field(name).count(a, inner, depth+1)
			}
		}
		a.fields, a.widest = a.fields+n, max(a.widest, n)
		return
	case []any:
		if !p.eachOnly() {
			break
		}
		if p.each != nil {
			a.fields += len(v)
			for _, e := range v {
				p.each.count(a, e, depth+1)
			}
		}
		return
	}
	a.add(v, depth)
}

// eachOnly reports whether not all of a list is part of it. Of a list of which the package selects fields
// all is, since an error may say what the list is.
func (p *projection) eachOnly() bool { return !p.all && len(p.fields) == 0 }

// namesIn returns the names of the fields of a struct that may be in the part of it, sorted.
func (p *projection) namesIn(m map[string]any) []string {
	if p.each != nil {
		return slices.Sorted(maps.Keys(m))
	}
	return p.names
}

// withoutManagedFields returns an object without the fields that no package may depend on: the
// managed fields, which change with every write and add new keys to CUE's table of labels, and
// the key of a Secret's digests.
func withoutManagedFields(object map[string]any) map[string]any {
	meta, ok := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	salted := annotations[SaltAnnotation] != nil
	if !ok || meta["managedFields"] == nil && !salted {
		return object
	}
	slim := maps.Clone(meta)
	delete(slim, "managedFields")
	if salted {
		annotations = maps.Clone(annotations)
		delete(annotations, SaltAnnotation)
		slim["annotations"] = annotations
	}
	return with(object, "metadata", slim)
}
