package main

import (
	"maps"
	"slices"
)

// A linker resolves references between declarations.
type linker map[string]*pkg

// link completes the declarations of all packages: embedded structs become fields, types that embed a
// TypeMeta become objects, types marked +enum take the values of their constants.
func link(pkgs []*pkg) {
	l := linker{}
	for _, p := range pkgs {
		l[p.goPath] = p
	}
	for _, p := range pkgs {
		for _, d := range p.decls {
			l.flatten(d)
		}
		l.enums(p)
	}
}

// lookup returns the declaration of a type, nil if it was not read.
func (l linker) lookup(id ref) *decl {
	if p := l[id.pkg]; p != nil {
		return p.byName[id.name]
	}
	return nil
}

// flatten replaces the types that d embeds, or is declared as, by their fields. A type that cannot be
// replaced becomes a field of unknown type, which is an error only if it is printed.
func (l linker) flatten(d *decl) {
	if d.same != (ref{}) {
		d.fields = []field{{typ: typ{kind: namedKind, ref: d.same}, embedded: true}}
	}
	var fields []field
	for _, f := range d.fields {
		if f.embedded && f.typ.ref == typeMeta {
			d.shape = objectShape
			continue
		}
		if !f.embedded {
			fields = append(fields, f)
			continue
		}
		inner := l.lookup(f.typ.ref)
		if inner == nil || inner.shape > objectShape {
			unknown := typ{kind: unknownKind, expr: "embedded " + f.typ.ref.pkg + "." + f.typ.ref.name}
			fields = append(fields, field{typ: unknown})
			continue
		}
		l.flatten(inner)
		fields = append(fields, inner.fields...)
		if d.same != (ref{}) {
			d.shape = inner.shape
		}
	}
	d.fields, d.same = fields, ref{}
}

// enums sets the values of the enums of a package, in the order of the constants.
func (l linker) enums(p *pkg) {
	for _, d := range p.decls {
		if d.shape != constShape || d.constOf.pkg != p.goPath {
			continue
		}
		of := p.byName[d.constOf.name]
		if of == nil || !of.enum {
			continue
		}
		of.shape = enumShape
		if !slices.Contains(of.values, d.values[0]) {
			of.values = append(of.values, d.values[0])
		}
	}
}

// prune removes declarations that the groups do not refer to from the support packages. It keeps
// constants without a type, and those of a type that remains.
func prune(pkgs []*pkg) {
	l := linker{}
	keep := map[ref]bool{}
	var visit func(ref)
	visit = func(id ref) {
		d := l.lookup(id)
		if keep[id] || d == nil {
			return
		}
		keep[id] = true
		d.refs(visit)
	}
	for _, p := range pkgs {
		l[p.goPath] = p
	}
	for _, p := range pkgs {
		for _, d := range p.decls {
			if !p.support {
				visit(ref{p.goPath, d.name})
			}
		}
	}
	for _, p := range pkgs {
		p.decls = slices.DeleteFunc(p.decls, func(d *decl) bool {
			if d.shape == constShape {
				return d.constOf != (ref{}) && !keep[d.constOf]
			}
			return !keep[ref{p.goPath, d.name}]
		})
		p.byName = map[string]*decl{}
		for _, d := range p.decls {
			p.byName[d.name] = d
		}
	}
}

// refs calls visit with every declared type that d mentions.
func (d *decl) refs(visit func(ref)) {
	d.typ.refs(visit)
	for _, f := range d.fields {
		f.typ.refs(visit)
	}
}

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
