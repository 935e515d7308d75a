package check

import (
	"fmt"

	"operetta.dev/engine/program"
)

const (
	// sampleName and sampleNamespace are those of every resource that is tried.
	sampleName      = "example"
	sampleNamespace = "default"
)

// A maker makes the resource of a selection.
type maker struct {
	program  *program.Program
	spec     *node
	branches []*branch
	numbers  map[*branch]int
}

func newMaker(p *program.Program, spec *node, branches []*branch) *maker {
	m := &maker{program: p, spec: spec, branches: branches, numbers: map[*branch]int{}}
	for i, b := range branches {
		m.numbers[b] = i
	}
	return m
}

// A made is a resource, with what its values are.
type made struct {
	resource map[string]any
	// used are the branches that are part of the resource, by number.
	used map[int]bool
	// invented is true if a value is made up, and coincides if values may be equal by accident.
	invented, coincides bool
	// inventions are the values that are made up, as texts.
	inventions []string
}

// make returns the resource of a selection.
func (m *maker) make(s selection) made {
	out := made{used: map[int]bool{}}
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
	return out
}

// value returns the value of a place in the element of a number, and false if it is left out.
func (m *maker) value(n *node, s selection, element int, out *made) (any, bool) {
	c := n.choices[0]
	if n.branch != nil {
		number := m.numbers[n.branch]
		out.used[number] = true
		c = n.choices[s[number]]
	}
	out.invented = out.invented || c.made
	out.coincides = out.coincides || c.coincides && (c.elements != nil || c.entries != nil)
	switch {
	case c.isLeftOut():
		return nil, false
	case c.literal != nil:
		value := c.literal(element)
		if c.made {
			out.inventions = append(out.inventions, fmt.Sprint(value))
		}
		return value, true
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
			v, _ := m.value(e, s, maxElements*element+i, out)
			value = append(value, v)
		}
		return value, true
	}
	value := map[string]any{}
	for i, e := range c.entries {
		v, _ := m.value(e.node, s, maxElements*element+i, out)
		value[e.key+suffix(element)] = v
		out.inventions = append(out.inventions, e.key)
	}
	return value, true
}
