package crd

import (
	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// list is the schema of a list: an array of elements of one type.
func (g *generator) list(at site, p parts, marks marks, base cue.Value) *schemaProps {
	if p.alternatives > 1 || !p.covers(base) {
		g.fault(at, "a choice between lists is no structural schema", "write one list whose elements have one type")
		return nil
	}
	if marks.preserve {
		return preserved(base)
	}
	schema := &schemaProps{Type: "array"}
	element, ok := g.element(at, base, schema)
	if !ok {
		return nil
	}
	inside := at.elements().in(element)
	inside.atomic = inside.atomic || marks.listType != "map"
	items := g.schema(inside, element)
	if items == nil {
		return nil
	}
	schema.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}
	for _, c := range p.calls {
		ok = g.validator(at, schema, c) && ok
	}
	if !ok {
		return nil
	}
	return schema
}

// element returns the type that all elements have, and writes into schema how many
// there are at least, [T, ...T], or exactly, [T, T].
func (g *generator) element(at site, base cue.Value, schema *schemaProps) (cue.Value, bool) {
	element := base.LookupPath(cue.MakePath(cue.AnyIndex))
	open := element.Exists() || element.Err() != nil && base.Allows(cue.AnyIndex)
	fixed, err := base.List()
	if err != nil {
		g.fault(at, message(err), "")
		return element, false
	}
	var n int64
	for ; fixed.Next(); n++ {
		if n == 0 && !open {
			element = fixed.Value()
		}
		if !same(element, fixed.Value()) {
			g.fault(at, "the elements of a list have one type in a CRD, this is a tuple",
				"write a struct with a field for each")
			return element, false
		}
	}
	switch {
	case n == 0 && !open:
		g.fault(at, "the list is always empty", "write the type of its elements, as in [...string]")
		return element, false
	case n > 0:
		schema.MinItems = &n
	}
	if !open {
		schema.MaxItems = &n
	}
	return element, true
}

func same(a, b cue.Value) bool {
	return a.Subsume(b, cue.Schema()) == nil && b.Subsume(a, cue.Schema()) == nil
}
