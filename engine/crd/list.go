package crd

import (
	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// listSchema returns the schema of a list: an array whose elements all have one type.
func (g *generator) listSchema(at location, p parts, attrs attributes, base cue.Value) *schemaProps {
	if p.alternatives > 1 || !p.acceptsDefaults(base) {
		g.fault(at, "a structural schema cannot express a choice between lists", "write one list whose elements have one type")
		return nil
	}
	if attrs.preserve {
		return preserveFieldsOf(base)
	}
	schema := &schemaProps{Type: "array"}
	element, ok := g.elementType(at, base, schema)
	if !ok {
		return nil
	}
	inside := at.elements().positionedAt(element)
	inside.atomic = inside.atomic || attrs.listType != "map"
	items := g.schema(inside, element)
	if items == nil {
		return nil
	}
	schema.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}
	if !g.addValidators(at, schema, p.calls) {
		return nil
	}
	return schema
}

// elementType returns the type that all elements have, and writes into schema their minimum
// number, as in [T, ...T], or their exact number, as in [T, T].
func (g *generator) elementType(at location, base cue.Value, schema *schemaProps) (cue.Value, bool) {
	element := base.LookupPath(cue.MakePath(cue.AnyIndex))
	open := element.Exists() || element.Err() != nil && base.Allows(cue.AnyIndex)
	fixed, err := base.List()
	if err != nil {
		g.fault(at, errorMessage(err), "")
		return element, false
	}
	var n int64
	for ; fixed.Next(); n++ {
		if n == 0 && !open {
			element = fixed.Value()
		}
		if !sameType(element, fixed.Value()) {
			g.fault(at, "all elements of a list must have the same type in a CRD, and this is a tuple",
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

func sameType(a, b cue.Value) bool {
	return a.Subsume(b, cue.Schema()) == nil && b.Subsume(a, cue.Schema()) == nil
}
