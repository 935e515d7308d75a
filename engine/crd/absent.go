package crd

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"cuelang.org/go/cue"
)

// absent is the JSON that CUE makes of a regular field which the user leaves out, "" if that
// is an error, and "null" if there is nothing to fill in.
func (g *generator) absent(at site, v cue.Value, schema *schemaProps) string {
	preferred, explicit := v.Default()
	if schema.Type == "object" && !explicit && !schema.Nullable {
		// The fields inside have their own defaults, and the API server applies them
		// only to an object that is there.
		if len(schema.Required) == 0 && schema.MinProperties == nil {
			return string(emptyDefault(schema))
		}
		return ""
	}
	if !isConcrete(preferred) {
		return ""
	}
	if g.depends(at, v).name != "" {
		return "null" // it follows from another field, so it is CUE that fills it in
	}
	text, err := preferred.MarshalJSON()
	if err != nil {
		return ""
	}
	if !enough(schema, preferred) {
		g.fault(at, "the default is not valid for the type beside it", "write a default that is, or none")
	}
	if name := disagreement(schema, text); name != "" {
		g.fault(at, fmt.Sprintf("the struct has a default, and its field %s another one", name),
			fmt.Sprintf("write the default of %s at the field alone", name))
	}
	return string(text)
}

// emptyDefault is the default of an object that a user may leave out because all of it has
// defaults. The API server applies those of the fields to {} before it looks at a rule, but
// not when it looks at the definition: there, a rule sees the default as it is written.
func emptyDefault(schema *schemaProps) []byte {
	if len(schema.XValidations) == 0 {
		return []byte("{}")
	}
	return complete(schema)
}

// complete writes the default of an object with those of its fields, however deep.
func complete(schema *schemaProps) []byte {
	fields := map[string]json.RawMessage{}
	for name, property := range schema.Properties {
		switch {
		case property.Default == nil:
		case equalJSON(property.Default.Raw, []byte("{}")):
			fields[name] = complete(&property)
		default:
			fields[name] = property.Default.Raw
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return []byte("{}") // raw JSON always has a text
	}
	return text
}

// disagreement finds a field whose default is not what the default of the struct has for
// it. If a user writes {}, CUE takes the default of the struct, but the API server has
// filled in those of the fields by then.
func disagreement(schema *schemaProps, text []byte) string {
	if schema.Type != "object" {
		return ""
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return "" // null
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		if property.Default == nil {
			continue
		}
		if !equalJSON(property.Default.Raw, emptyDefault(&property)) {
			if !equalJSON(property.Default.Raw, fields[name]) {
				return name
			}
			continue
		}
		if inner := disagreement(&property, fields[name]); inner != "" {
			return name + "." + inner
		}
	}
	return ""
}

// enough holds if a list has as many elements as its type demands. CUE does not ask that of
// a default; the API server does.
func enough(schema *schemaProps, list cue.Value) bool {
	n, err := list.Len().Int64()
	switch {
	case err != nil:
		return true // null
	case schema.MinItems != nil && n < *schema.MinItems, schema.MaxItems != nil && n > *schema.MaxItems:
		return false
	}
	return true
}

func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
