package program

import (
	"maps"

	"operetta.dev/engine/program/syntax"
)

// A projection is the part of some data that a package refers to: all of it, or the fields that
// have a projection of their own.
//
// A package refers to few fields of a live object or of an input. The others do not enter CUE:
// they would cost time, their keys would stay in CUE's process-wide table of labels for good,
// and equal evaluations would look different when such a field changes.
type projection struct {
	all    bool
	fields map[string]*projection
}

// project returns the part below a root that the package refers to or declares itself. If
// another package adds fields to the root, that is all of it, since those may refer to anything.
func project(x *syntax.Index, root string) *projection {
	out := &projection{all: x.Foreign()}
	for _, r := range x.References() {
		if r.Path[0] == root {
			out.add(r.Path[1:])
		}
	}
	if root != "live" {
		// A constraint on a field is as much a reference to it as an expression is.
		for _, path := range x.Declared(root) {
			out.add(path)
		}
	}
	return out
}

func (p *projection) add(path []string) {
	if len(path) == 0 {
		p.all = true
		return
	}
	if p.fields == nil {
		p.fields = map[string]*projection{}
	}
	if p.fields[path[0]] == nil {
		p.fields[path[0]] = &projection{}
	}
	p.fields[path[0]].add(path[1:])
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
	return p.fields[name]
}

// live returns the live objects as a package sees them.
func (p *projection) live(live map[string]map[string]map[string]any) map[string]any {
	out := make(map[string]any, len(live))
	for component, objects := range live {
		ofComponent := p.field(component)
		if ofComponent == nil {
			continue
		}
		seen := make(map[string]any, len(objects))
		for name, object := range objects {
			if ofObject := ofComponent.field(name); ofObject != nil {
				seen[name] = ofObject.of(withoutManagedFields(object))
			}
		}
		out[component] = seen
	}
	return out
}

// of returns the part of a value that the package refers to.
func (p *projection) of(v any) any {
	m, ok := v.(map[string]any)
	if !ok || p.all {
		return integral(v)
	}
	out := make(map[string]any, len(p.fields))
	for name, field := range p.fields {
		if inner, ok := m[name]; ok {
			out[name] = field.of(inner)
		}
	}
	return out
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
