package check

import (
	"fmt"
	"maps"
	"slices"

	"operetta.dev/engine/program"
)

const (
	// sampleName and sampleNamespace are those of every resource that is tried.
	sampleName      = "example"
	sampleNamespace = "default"
)

// A maker makes the resource of a selection.
type maker struct {
	program *program.Program
	spec    *node
	// inputs are what is made up for inputs, by their names.
	inputs   map[string]*node
	branches []*branch
	numbers  map[*branch]int
	// widest is how many elements a list or map has at most: the elements of all lists in it have different numbers.
	widest int
}

func newMaker(p *program.Program, spec *node, branches []*branch) *maker {
	m := &maker{program: p, spec: spec, branches: branches, numbers: map[*branch]int{}, widest: maxElements}
	for i, b := range branches {
		m.numbers[b] = i
		for _, c := range slices.Concat(b.choices, b.rare) {
			m.widest = max(m.widest, len(c.elements), len(c.entries))
		}
	}
	return m
}

// A madeResource is a resource, with what its values are.
type madeResource struct {
	resource map[string]any
	// used are the branches that are part of the resource, by number.
	used map[int]bool
	// invented is true if a value is made up, and coincides if values may be equal by accident.
	invented, coincides bool
	// inventions are the values that are made up, as texts.
	inventions []string
	// inputs are the fields of the objects of each input, by its name; one that is left out has none.
	inputs map[string][]map[string]any
	// samples are the values in them for which another one may do as well.
	samples []*sample
	// odd is the odd key that a map has, and the path of the map.
	odd oddKey
}

// make returns the resource of a selection.
func (m *maker) make(s selection) madeResource {
	out := madeResource{used: map[int]bool{}}
	spec, _ := m.value(m.spec, s, 0, &out)
	metadata := map[string]any{"name": sampleName}
	if !m.program.Meta().ClusterScoped {
		metadata["namespace"] = sampleNamespace
	}
	gvk := m.program.GroupVersionKind()
	out.resource = map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind,
		"metadata": metadata, "spec": spec,
	}
	m.makeInputs(s, &out)
	return out
}

// makeInputs adds the objects of inputs.
func (m *maker) makeInputs(s selection, out *madeResource) {
	out.inputs = map[string][]map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(m.inputs)) {
		value, _ := m.value(m.inputs[name], s, 0, out)
		switch v := value.(type) {
		case map[string]any:
			out.inputs[name] = []map[string]any{v}
		case []any:
			for _, element := range v {
				fields, _ := element.(map[string]any)
				out.inputs[name] = append(out.inputs[name], fields)
			}
			out.coincides = out.coincides || len(v) > 1 && share(v[0], v[1])
		}
	}
}

// share reports whether two values have the same one in some place.
func share(a, b any) bool {
	x, isMap := a.(map[string]any)
	y, areBoth := b.(map[string]any)
	if !isMap || !areBoth {
		return equal(a, b)
	}
	for name := range x {
		if other, has := y[name]; has && share(x[name], other) {
			return true
		}
	}
	return false
}

// value returns the value of a place in the element of a number, and false if it is left out.
func (m *maker) value(n *node, s selection, element int, out *madeResource) (any, bool) {
	value, set := m.plain(n, s, element, out)
	if set && n.encode != nil {
		value = n.encode(value)
		out.inventions = append(out.inventions, fmt.Sprint(value))
	}
	return value, set
}

// plain is value before it is encoded.
func (m *maker) plain(n *node, s selection, element int, out *madeResource) (any, bool) {
	c := n.choices[0]
	if n.branch != nil {
		number := m.numbers[n.branch]
		out.used[number] = true
		c = n.choice(s[number])
	}
	out.invented = out.invented || c.made
	out.coincides = out.coincides || c.coincides && (c.elements != nil || c.entries != nil)
	switch {
	case c.isLeftOut():
		return nil, false
	case c.literal != nil:
		return out.scalar(c, element)
	case c.fields != nil:
		value := map[string]any{}
		for _, f := range c.fields {
			if v, set := m.value(f.node, s, element, out); set {
				value[f.name] = v
			}
		}
		return value, len(value) > 0 || !n.dropsEmpty
	case c.elements != nil:
		value := []any{}
		for i, e := range c.elements {
			v, _ := m.value(e, s, m.widest*element+i, out)
			value = append(value, v)
		}
		return value, true
	}
	value := map[string]any{}
	for i, e := range c.entries {
		v, _ := m.value(e.node, s, m.widest*element+i, out)
		value[e.key+suffix(element)] = v
		if c.odd {
			out.odd = oddKey{n.branch.path, e.key}
			continue
		}
		out.inventions = append(out.inventions, e.key)
	}
	return value, true
}

// choice returns the choice of a number: a rare one, if it is beyond the others.
func (n *node) choice(number int) choice {
	if number < len(n.choices) {
		return n.choices[number]
	}
	return n.branch.rare[number-len(n.choices)]
}

// scalar returns the value of a choice that is no struct, list or map, and false if it is left out.
func (out *madeResource) scalar(c choice, element int) (any, bool) {
	value := c.literal(element)
	if c.sample != nil && !slices.Contains(out.samples, c.sample) {
		out.samples = append(out.samples, c.sample)
	}
	if value == (omitted{}) {
		return nil, false
	}
	if c.made {
		out.inventions = append(out.inventions, fmt.Sprint(value))
	}
	return value, true
}
