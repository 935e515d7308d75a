package object_test

import (
	"encoding/json"
	"testing"

	"operetta.dev/engine/object"
)

func TestValuesAreEqualIfTheirJSONIs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		a, b any
		want bool
	}{
		"equal texts":                  {"x", "x", true},
		"other texts":                  {"x", "y", false},
		"a text and a number":          {"1", int64(1), false},
		"a named type of text":         {json.Number("1"), int64(1), true},
		"integers of two types":        {int64(3), 3, true},
		"an integer and a float":       {int64(3), 3.0, true},
		"another number":               {int64(3), 3.5, false},
		"integers that no float tells": {int64(1)<<53 + 1, int64(1) << 53, false},
		"what is no UTF-8":             {"a\xff", "a\ufffd", true},
		"a name that is no UTF-8":      {map[string]any{"\xff": "x"}, map[string]any{"\ufffd": "x"}, true},
		"another name":                 {map[string]any{"x": "x"}, map[string]any{"y": "x"}, false},
		"one more name":                {map[string]any{"x": "x"}, map[string]any{"x": "x", "y": "x"}, false},
		"null and nothing":             {map[string]any{"x": nil}, map[string]any{}, false},
		"null and an empty list":       {[]any(nil), []any{}, false},
		"null and an empty map":        {map[string]any(nil), map[string]any{}, false},
		"one more element":             {[]any{"x"}, []any{"x", "x"}, false},
		"another order":                {[]any{"x", "y"}, []any{"y", "x"}, false},
		"texts that are typed":         {[]string{"x"}, []any{"x"}, true},
		"fields that are typed":        {map[string]string{"x": "y"}, map[string]any{"x": "y"}, true},
		"booleans":                     {true, false, false},
		"null and null":                {nil, nil, true},
		"a list and what has no order": {[]any{"x"}, map[string]any{"x": "x"}, false},
		"what JSON cannot say":         {func() {}, "x", false},
	} {
		of := func(v any) map[string]any { return map[string]any{"a": []any{map[string]any{"b": v}}} }
		if got := object.Equal(of(row.a), of(row.b)); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
		if got := object.Equal(of(row.b), of(row.a)); got != row.want {
			t.Errorf("%s, the other way round: %v, want %v", name, got, row.want)
		}
	}
	if !object.EqualFields(nil, map[string]any{}) {
		t.Error("no fields are others than those of an empty map")
	}
}

func TestAComparisonOfPlainValuesAllocatesNothing(t *testing.T) {
	of := func() map[string]any {
		return map[string]any{"generation": int64(1), "paused": false, "conditions": []any{map[string]any{"type": "Ready", "message": nil}}}
	}
	a, b := of(), of()
	if n := testing.AllocsPerRun(100, func() {
		if !object.Equal(a, b) {
			t.Error("they are not equal")
		}
	}); n > 0 {
		t.Errorf("it allocates %v times", n)
	}
}
