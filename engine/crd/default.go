package crd

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// defaultOf returns the JSON value that CUE gives a regular field that the user leaves out. It is
// "" if leaving it out is an error, and "null" if there is nothing to fill in.
func (g *generator) defaultOf(at location, v cue.Value, schema *schemaProps) string {
	preferred, explicit := v.Default()
	if schema.Type == "object" && !explicit && !schema.Nullable {
		// The API server applies the defaults of the fields only if the object exists.
		if len(schema.Required) == 0 && schema.MinProperties == nil && !g.refusesDefaults(at, v) {
			return string(emptyDefault(schema))
		}
		return ""
	}
	if !isConcrete(preferred) {
		return ""
	}
	if g.findDependency(at, v).name != "" {
		return "null" // it is computed from another field, so CUE fills it in
	}
	text, err := preferred.MarshalJSON()
	if err != nil {
		return ""
	}
	if !hasValidLength(schema, preferred) {
		g.fault(at, "the default is not valid for its own type", "write a valid default, or none")
	}
	if name := conflictingDefault(schema, text); name != "" {
		g.fault(at, fmt.Sprintf("the struct has a default, and its field %s has a different one", name),
			fmt.Sprintf("write the default of %s only at the field", name))
	}
	return string(text)
}

// refusesDefaults reports whether a rule that is made of CUE refuses a struct that a user leaves out, although all its fields
// have defaults: then CUE refuses it as well.
func (g *generator) refusesDefaults(at location, v cue.Value) bool {
	ruled := slices.ContainsFunc(g.translated, func(t TranslatedRule) bool { return t.Path == at.path || strings.HasPrefix(t.Path, at.path+".") })
	return ruled && v.Validate(cue.Concrete(true), cue.Final()) != nil
}

// emptyDefault returns the default of an object that a user may leave out because all its
// fields have defaults. For a resource, the API server fills in the fields of {} before it
// evaluates a rule. For the definition it does not: there, a rule sees the default as written.
func emptyDefault(schema *schemaProps) []byte {
	if len(schema.XValidations) == 0 {
		return []byte("{}")
	}
	return nestedDefaults(schema)
}

// nestedDefaults returns the default of an object with those of its fields, however deep.
func nestedDefaults(schema *schemaProps) []byte {
	fields := map[string]json.RawMessage{}
	for name, property := range schema.Properties {
		switch {
		case property.Default == nil:
		case equalJSON(property.Default.Raw, []byte("{}")):
			fields[name] = nestedDefaults(&property)
		default:
			fields[name] = property.Default.Raw
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return []byte("{}") // unreachable: the values are JSON already
	}
	return text
}

// conflictingDefault returns the path of a field whose default differs from the one in the
// default of the struct, or "". If a user writes {}, CUE takes the default of the struct, but
// the API server has already filled in the defaults of the fields.
func conflictingDefault(schema *schemaProps, text []byte) string {
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
		if inner := conflictingDefault(&property, fields[name]); inner != "" {
			return name + "." + inner
		}
	}
	return ""
}

// hasValidLength reports whether a list has as many elements as its type demands. CUE does not
// check that for a default; the API server does.
func hasValidLength(schema *schemaProps, list cue.Value) bool {
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
