package object

import (
	"encoding/json"
	"reflect"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Equal reports whether two values are the same in JSON, whatever the Go types of their numbers. Values as they come
// from the API server or from a package are compared as they are; what is not plain is written as JSON, which costs
// many times as much.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		if b == nil {
			return true
		}
	case map[string]any:
		if b, ok := b.(map[string]any); ok && (a == nil) == (b == nil) {
			return EqualFields(a, b)
		}
	case []any:
		if b, ok := b.([]any); ok && (a == nil) == (b == nil) {
			return equalElements(a, b)
		}
	case string:
		// What is no UTF-8 is replaced in JSON.
		if b, ok := b.(string); ok && (a == b || utf8.ValidString(a) && utf8.ValidString(b)) {
			return a == b
		}
	case bool:
		if b, ok := b.(bool); ok {
			return a == b
		}
	case int64:
		if b, ok := b.(int64); ok {
			return a == b
		}
	}
	return equalDecoded(a, b)
}

// EqualFields compares the fields of two maps as Equal does. A map that is nil has no fields.
func EqualFields(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
		return true
	}
	for name, field := range a {
		other, ok := b[name]
		if !ok {
			return equalDecoded(a, b) // for names that are no UTF-8
		}
		if !Equal(field, other) {
			return false
		}
	}
	return true
}

func equalElements(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalDecoded(a, b any) bool { return equality.Semantic.DeepEqual(decoded(a), decoded(b)) }

// decoded returns a value as JSON decodes it, with all numbers of one type.
func decoded(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	if json.Unmarshal(text, &out) != nil {
		return v
	}
	return out
}
