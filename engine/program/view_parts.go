package program

import (
	"maps"
	"slices"
	"strconv"

	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/template"
)

// partProjections returns what each part of a rollout rests on of a view, by the name of the part. It is empty if the
// text of the package does not show that.
func partProjections(x *syntax.Index, v *Views) map[string]*projection {
	parts := syntax.PartsOf(x)
	out := map[string]*projection{}
	for _, name := range parts.Names() {
		all := &projection{all: true}
		live := projectReadings(x, "live", parts.Readings(name))
		p := &projection{fields: map[string]*projection{
			"cr": v.cr, "live": live, "inputs": projectReadings(x, "inputs", parts.Readings(name)),
			"config": all, "layers": all, "secrets": secretsOf(live),
		}}
		if name != syntax.Frame && !parts.RelatesFields() {
			p.fields["cr"] = resourcePart(v.cr, projectReadings(x, "cr", parts.Readings(name)))
		}
		p.complete()
		out[name] = p
	}
	return out
}

// projectReadings returns the part below a root that some readings are of, with what the package declares itself.
func projectReadings(x *syntax.Index, root string, readings []syntax.Reading) *projection {
	out := &projection{}
	for _, r := range slices.Concat(readings, x.Declarations(root)) {
		if r.Path[0] == root {
			out.add(r.Path[1:], r.Extent)
		}
	}
	return out
}

// resourcePart returns what is read of the spec, and all else that the package sees of a resource.
func resourcePart(resource, read *projection) *projection {
	spec := read.field("spec")
	if spec == nil {
		spec = &projection{}
	}
	out := &projection{fields: maps.Clone(resource.fields)}
	out.fields["spec"] = spec
	return out
}

// secretsOf returns the part of the Secrets of a session that is about the live objects that are read, and about inputs.
func secretsOf(live *projection) *projection {
	all := &projection{all: true}
	if live.all || live.each != nil {
		return all
	}
	out := &projection{fields: map[string]*projection{"": all}}
	for component := range live.fields {
		out.fields[component] = all
	}
	return out
}

// Parts returns the names of the parts of a rollout that rest on less than all of a view, sorted.
func (v *Views) Parts() []string { return slices.Sorted(maps.Keys(v.parts)) }

// PartOf returns the part that a component, or a field of the status, belongs to: its own, or the frame.
func (v *Views) PartOf(name string) string {
	if _, ok := v.parts[name]; ok {
		return name
	}
	return syntax.Frame
}

// Sees reports whether a part of a rollout rests on the value at a path of a view, or on what is below it.
func (v *Views) Sees(part string, path []string) bool {
	p := v.parts[part]
	for _, name := range path {
		if p == nil {
			return false
		}
		if p.all {
			return true
		}
		if _, err := strconv.Atoi(name); err == nil && p.each != nil {
			p = p.each
			continue
		}
		p = p.field(name)
	}
	return p != nil
}

// SeesAll reports whether a part of a rollout rests on all values that a node refers to.
func (v *Views) SeesAll(part string, n *template.Node) bool {
	return !slices.ContainsFunc(n.References(), func(path []string) bool { return !v.Sees(part, path) })
}

// PartPins returns those of some pins that are about what a part of a rollout rests on.
func (v *Views) PartPins(part string, pins template.Pins) template.Pins {
	var out template.Pins
	for _, path := range pins.Paths() {
		if v.Sees(part, path) {
			out, _ = out.With(path...)
		}
	}
	for _, c := range pins.Conditions() {
		if v.SeesAll(part, c) {
			if more, _, err := out.WithCondition(c); err == nil {
				out = more
			}
		}
	}
	return out
}

// PartShape returns the shape of what a part of a rollout rests on, by the pins of PartPins.
func (v View) PartShape(part string, pins template.Pins) template.Key {
	return v.shapeOf(v.parts[part], pins)
}
