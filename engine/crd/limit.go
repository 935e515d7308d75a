package crd

import (
	"encoding/json"
	"math"
	"slices"
	"unicode/utf8"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// An API server stores any object that fits into a request, which is megabytes. A user who may
// create one resource could keep the operator busy with it, at the expense of all others. So the
// CRD has a limit wherever the author sets none. The limits leave room for everything that a
// person would write; an author who needs more raises them in CUE:
//
//	strings.MaxRunes(100000)    list.MaxItems(1000)    struct.MaxFields(1000)
//
// Values that are bounded anyway get no limit: a constant, an enumeration, an address, a pattern
// that only short strings match. CUE has no validator for the length of bytes, so these may be
// as large as a whole resource.
const (
	// maxStringLength is the maximum number of characters of a string.
	maxStringLength = 32_768
	// maxNestedStringLength is the same inside a list or a map, so that the API server accepts
	// the estimated cost of a rule over all elements, such as self.all(x, x.matches('^[a-z]+$')).
	maxNestedStringLength = 16_384
	// maxBytesLength is the maximum number of characters of the base64 form of bytes: more than
	// an evaluation accepts for a whole resource.
	maxBytesLength = 262_144
	// maxElements is the maximum number of items of a list, and of fields of a map.
	maxElements = 256
	// maxNestedElements is the same inside another list or map: 256 times 32 is still below the
	// number of values that an evaluation accepts for one resource.
	maxNestedElements = 32
)

// addDefaultLimits sets the limits that the author left out. depth is the number of lists and
// maps around the schema. values are the defaults of the schema; the limits leave room for them.
func addDefaultLimits(schema *schemaProps, depth int, values []any) {
	if schema.Default != nil {
		values = append(slices.Clip(values), decodeJSON(schema.Default.Raw))
	}
	many := int64(maxElements)
	if depth > 0 {
		many = maxNestedElements
	}
	switch {
	case schema.Type == "array":
		if schema.MaxItems == nil {
			schema.MaxItems = widenLimit(many, schema.MinItems, values)
		}
		addDefaultLimits(schema.Items.Schema, depth+1, elementValues(values))
	case schema.Type == "object":
		isMap := schema.AdditionalProperties != nil || len(schema.Properties) == 0 && ptr.Deref(schema.XPreserveUnknownFields, false)
		if isMap && schema.MaxProperties == nil {
			schema.MaxProperties = widenLimit(many, schema.MinProperties, values)
		}
		if schema.AdditionalProperties != nil {
			addDefaultLimits(schema.AdditionalProperties.Schema, depth+1, elementValues(values))
		}
		for name, property := range schema.Properties {
			addDefaultLimits(&property, depth, fieldValues(values, name))
			schema.Properties[name] = property
		}
	case schema.Type == "string" || schema.XIntOrString:
		text := int64(maxStringLength)
		if depth > 0 {
			text = maxNestedStringLength
		}
		if longest, bounded := maxLengthOf(schema); !bounded {
			schema.MaxLength = widenLimit(max(longest, text), schema.MinLength, values)
		}
	}
}

// widenLimit returns a limit that is not below minimum, and that all values satisfy.
func widenLimit(limit int64, minimum *int64, values []any) *int64 {
	if minimum != nil {
		limit = max(limit, *minimum)
	}
	for _, v := range values {
		switch v := v.(type) {
		case string:
			limit = max(limit, int64(utf8.RuneCountInString(v)))
		case []any:
			limit = max(limit, int64(len(v)))
		case map[string]any:
			limit = max(limit, int64(len(v)))
		}
	}
	return &limit
}

// maxLengthOf returns the maximum length of a valid string, and whether the schema bounds it.
// If not, it returns the length that a default limit has to allow.
func maxLengthOf(schema *schemaProps) (longest int64, bounded bool) {
	narrow := func(n int64) {
		if !bounded || n < longest {
			longest, bounded = n, true
		}
	}
	if schema.MinLength != nil {
		longest = *schema.MinLength
	}
	if schema.MaxLength != nil {
		narrow(*schema.MaxLength)
	}
	if len(schema.Enum) > 0 {
		narrow(longestEnumValue(schema))
	}
	if n, ok := maxMatchLength(schema.Pattern); ok {
		narrow(n)
	}
	switch schema.Format {
	case "":
	case "byte":
		longest = maxBytesLength
	default:
		narrow(maxFormatLength)
	}
	add := func(n int64, ok bool) {
		if ok {
			narrow(n)
		} else if !bounded {
			longest = max(longest, n)
		}
	}
	for i := range schema.AllOf {
		add(maxLengthOf(&schema.AllOf[i]))
	}
	if len(schema.AnyOf) > 0 {
		add(maxLengthOfAny(schema.AnyOf))
	}
	return longest, bounded
}

// maxFormatLength is the maximum length of a date or an address.
const maxFormatLength = 64

// maxLengthOfAny is maxLengthOf for alternatives: they are bounded if each of them is.
func maxLengthOfAny(arms []schemaProps) (longest int64, bounded bool) {
	bounded = true
	for i := range arms {
		n, ok := maxLengthOf(&arms[i])
		longest, bounded = max(longest, n), bounded && ok
	}
	return longest, bounded
}

// longestEnumValue returns the length of the longest constant of an enumeration.
func longestEnumValue(schema *schemaProps) int64 {
	var longest int64
	for _, e := range schema.Enum {
		if text, ok := decodeJSON(e.Raw).(string); ok {
			longest = max(longest, int64(utf8.RuneCountInString(text)))
		}
	}
	return longest
}

func decodeJSON(text []byte) any {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil // unreachable: the generator wrote it
	}
	return v
}

// elementValues returns the elements of lists and maps.
func elementValues(values []any) []any {
	var out []any
	for _, v := range values {
		switch v := v.(type) {
		case []any:
			out = append(out, v...)
		case map[string]any:
			for _, e := range v {
				out = append(out, e)
			}
		}
	}
	return out
}

// fieldValues returns the values of one field in several structs.
func fieldValues(values []any, name string) []any {
	var out []any
	for _, v := range values {
		if fields, ok := v.(map[string]any); ok && fields[name] != nil {
			out = append(out, fields[name])
		}
	}
	return out
}

// Limits bound the values of a schema: of a number its value, of a string the number of
// characters, and of a list or a map the number of elements.
type Limits struct {
	Low, High float64
	// Finite says that there is a fixed set of values, such as an enumeration.
	Finite bool
}

// LimitsOf returns the limits that an API server enforces for a field of a spec, including the
// limits by default. depth is the number of lists and maps around the field. A limit that the
// API server does not enforce is infinite.
func LimitsOf(v cue.Value, depth int) Limits {
	schema := (&generator{}).schema(root(""), v)
	if schema != nil {
		addDefaultLimits(schema, depth, nil)
	}
	return limitsOf(schema)
}

// FieldSchema returns the schema of a field, or nil if a CustomResourceDefinition cannot express it.
func FieldSchema(v cue.Value) *apiextensionsv1.JSONSchemaProps {
	return (&generator{}).schema(root(""), v)
}

// DeclaredLimitsOf returns the limits that the author of a schema has written, for values that
// no API server validates. A limit that is not written is infinite.
func DeclaredLimitsOf(v cue.Value) Limits { return limitsOf((&generator{}).schema(root(""), v)) }

// limitsOf returns the limits of a schema. A nil schema belongs to a value that a CRD cannot
// describe.
func limitsOf(schema *schemaProps) Limits {
	atMost := func(n *int64) Limits {
		if n == nil {
			return Limits{High: math.Inf(1)}
		}
		return Limits{High: float64(*n)}
	}
	switch {
	case schema == nil:
	case schema.Type == "array":
		return atMost(schema.MaxItems)
	case schema.Type == "object" && (schema.AdditionalProperties != nil || ptr.Deref(schema.XPreserveUnknownFields, false)):
		return atMost(schema.MaxProperties)
	case schema.Type == "object":
		return Limits{High: float64(len(schema.Properties)), Finite: len(schema.Properties) == 0}
	case schema.Type == "boolean":
		return Limits{High: 1, Finite: true}
	case schema.Type == "integer", schema.Type == "number":
		return rangeOf(schema)
	case schema.Type == "string":
		longest, bounded := maxLengthOf(schema)
		if !bounded {
			return atMost(nil)
		}
		return Limits{High: float64(longest), Finite: len(schema.Enum) > 0}
	}
	return Limits{Low: math.Inf(-1), High: math.Inf(1)} // any of several types
}

// rangeOf returns the minimum and maximum of the numbers of a schema.
func rangeOf(schema *schemaProps) Limits {
	out := Limits{Low: math.Inf(-1), High: math.Inf(1), Finite: len(schema.Enum) > 0}
	narrow := func(low, high float64) { out.Low, out.High = max(out.Low, low), min(out.High, high) }
	if schema.Minimum != nil {
		narrow(*schema.Minimum, math.Inf(1))
	}
	if schema.Maximum != nil {
		narrow(math.Inf(-1), *schema.Maximum)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, e := range schema.Enum {
		if n, ok := decodeJSON(e.Raw).(float64); ok {
			low, high = min(low, n), max(high, n)
		}
	}
	for i := range schema.AnyOf {
		arm := rangeOf(&schema.AnyOf[i])
		low, high = min(low, arm.Low), max(high, arm.High)
	}
	if len(schema.Enum)+len(schema.AnyOf) > 0 {
		narrow(low, high)
	}
	for i := range schema.AllOf {
		arm := rangeOf(&schema.AllOf[i])
		narrow(arm.Low, arm.High)
	}
	return out
}
