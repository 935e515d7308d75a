package crd

import (
	"encoding/json"
	"math"
	"slices"
	"unicode/utf8"

	"cuelang.org/go/cue"
)

// An API server stores whatever fits into a request, which is megabytes, and whoever may
// create one resource would keep the operator busy for all others with it. So what the author
// leaves open has a limit in the CRD all the same. A resource may have everything that is
// of use to a person in it; what is beyond is for the author to allow, in CUE:
//
//	strings.MaxRunes(100000)    list.MaxItems(1000)    struct.MaxFields(1000)
//
// Nothing is added to what is limited by what it is: a constant, an enumeration, an address, a
// pattern that only short texts match. What is of a type that CUE has no such validator for,
// bytes, may be as large as all of a resource.
const (
	// maxText is how many characters a string has at most.
	maxText = 32_768
	// maxTextWithin is the same within a list or a map, so that a rule over all elements, such
	// as self.all(x, x.matches('^[a-z]+$')), has a price that the API server allows.
	maxTextWithin = 16_384
	// maxBytes is how many characters the base64 form of bytes has at most: more than an
	// evaluation takes of one resource as a whole.
	maxBytes = 262_144
	// maxMany is how many items a list, and how many fields a map has at most.
	maxMany = 256
	// maxManyWithin is the same within another list or map: 256 times 32 is still below the
	// number of values that an evaluation takes of one resource.
	maxManyWithin = 32
)

// limited gives the schema of a spec the limits that its author left out. values are the defaults
// that are stored there, which are never beyond them.
func limited(schema *schemaProps, within int, values []any) {
	if schema.Default != nil {
		values = append(slices.Clip(values), decoded(schema.Default.Raw))
	}
	many := int64(maxMany)
	if within > 0 {
		many = maxManyWithin
	}
	switch {
	case schema.Type == "array":
		if schema.MaxItems == nil {
			schema.MaxItems = atLeast(many, schema.MinItems, values)
		}
		limited(schema.Items.Schema, within+1, elementsOf(values))
	case schema.Type == "object":
		isMap := schema.AdditionalProperties != nil || len(schema.Properties) == 0 && isTrue(schema.XPreserveUnknownFields)
		if isMap && schema.MaxProperties == nil {
			schema.MaxProperties = atLeast(many, schema.MinProperties, values)
		}
		if schema.AdditionalProperties != nil {
			limited(schema.AdditionalProperties.Schema, within+1, elementsOf(values))
		}
		for name, property := range schema.Properties {
			limited(&property, within, fieldsOf(values, name))
			schema.Properties[name] = property
		}
	case schema.Type == "string" || schema.XIntOrString:
		text := int64(maxText)
		if within > 0 {
			text = maxTextWithin
		}
		if longest, bounded := lengthOf(schema); !bounded {
			schema.MaxLength = atLeast(max(longest, text), schema.MinLength, values)
		}
	}
}

// atLeast returns a limit that leaves room for what else is asked for.
func atLeast(limit int64, least *int64, values []any) *int64 {
	if least != nil {
		limit = max(limit, *least)
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

// lengthOf returns how long a text may be that is valid, and whether the schema itself says
// so; if not, it is how long one has to be allowed to be at least.
func lengthOf(schema *schemaProps) (longest int64, bounded bool) {
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
		narrow(longestOf(schema))
	}
	if n, ok := longestMatch(schema.Pattern); ok {
		narrow(n)
	}
	switch schema.Format {
	case "":
	case "byte":
		longest = maxBytes
	default:
		narrow(maxFormatted)
	}
	for i := range schema.AllOf {
		n, ok := lengthOf(&schema.AllOf[i])
		if ok {
			narrow(n)
		} else if !bounded {
			longest = max(longest, n)
		}
	}
	if len(schema.AnyOf) > 0 {
		n, ok := lengthOfAny(schema.AnyOf)
		if ok {
			narrow(n)
		} else if !bounded {
			longest = max(longest, n)
		}
	}
	return longest, bounded
}

// maxFormatted is how long a date or an address is at most.
const maxFormatted = 64

// lengthOfAny is lengthOf for alternatives: they are bounded if each is.
func lengthOfAny(arms []schemaProps) (longest int64, bounded bool) {
	bounded = true
	for i := range arms {
		n, ok := lengthOf(&arms[i])
		longest, bounded = max(longest, n), bounded && ok
	}
	return longest, bounded
}

// longestOf returns the length of the longest constant of an enumeration.
func longestOf(schema *schemaProps) int64 {
	var longest int64
	for _, e := range schema.Enum {
		if text, ok := decoded(e.Raw).(string); ok {
			longest = max(longest, int64(utf8.RuneCountInString(text)))
		}
	}
	return longest
}

func decoded(text []byte) any {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil // it was written by the generator, so there is no such case
	}
	return v
}

// elementsOf returns what is in some lists and maps.
func elementsOf(values []any) []any {
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

// fieldsOf returns the values of one field in some structs.
func fieldsOf(values []any, name string) []any {
	var out []any
	for _, v := range values {
		if fields, ok := v.(map[string]any); ok && fields[name] != nil {
			out = append(out, fields[name])
		}
	}
	return out
}

// Limits are what the values of a schema are between: a number itself, of a text the
// number of its characters, and of a list or a map how many elements it has.
type Limits struct {
	Low, High float64
	// Finite says that there is a fixed set of values, such as an enumeration.
	Finite bool
}

// LimitsOf returns the limits that an API server holds a field of a spec to, with those that
// its author left out. within is in how many lists and maps the field is. What the API server
// does not limit is infinite.
func LimitsOf(v cue.Value, within int) Limits {
	schema := (&generator{}).schema(root(""), v)
	if schema != nil {
		limited(schema, within, nil)
	}
	return limitsOf(schema)
}

// WrittenLimitsOf returns the limits that the author of a schema has written, for what no API
// server holds to one. What has none is infinite.
func WrittenLimitsOf(v cue.Value) Limits { return limitsOf((&generator{}).schema(root(""), v)) }

// limitsOf returns the limits of a schema; nil is one of what cannot be described.
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
	case schema.Type == "object" && (schema.AdditionalProperties != nil || isTrue(schema.XPreserveUnknownFields)):
		return atMost(schema.MaxProperties)
	case schema.Type == "object":
		return Limits{High: float64(len(schema.Properties)), Finite: len(schema.Properties) == 0}
	case schema.Type == "boolean":
		return Limits{High: 1, Finite: true}
	case schema.Type == "integer", schema.Type == "number":
		return rangeOf(schema)
	case schema.Type == "string":
		longest, bounded := lengthOf(schema)
		if !bounded {
			return atMost(nil)
		}
		return Limits{High: float64(longest), Finite: len(schema.Enum) > 0}
	}
	return Limits{Low: math.Inf(-1), High: math.Inf(1)} // any of several types
}

// rangeOf returns what the numbers of a schema are between.
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
		if n, ok := decoded(e.Raw).(float64); ok {
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
