package program

import (
	"encoding/base64"
	"fmt"
	"math"

	"cuelang.org/go/cue"
)

// toGo returns a concrete value as the Go types that Kubernetes' unstructured
// objects are made of: map[string]any, []any, string, bool, int64, float64, nil.
// It errors on what is not concrete, with the path.
//
// Walking the value costs a fraction of marshalling it to JSON and back, which
// also turns integers into floats.
func toGo(v cue.Value) (any, error) {
	v, _ = v.Default()
	switch v.Kind() {
	case cue.StructKind:
		return structToGo(v)
	case cue.ListKind:
		return listToGo(v)
	case cue.StringKind:
		return v.String()
	case cue.BoolKind:
		return v.Bool()
	case cue.IntKind:
		return v.Int64()
	case cue.FloatKind, cue.NumberKind:
		return floatToGo(v)
	case cue.BytesKind:
		b, err := v.Bytes()
		return base64.StdEncoding.EncodeToString(b), err
	case cue.NullKind:
		return nil, nil
	case cue.BottomKind:
		if err := v.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%v: incomplete value %v", v.Path(), v)
	}
	return nil, fmt.Errorf("%v: a value of kind %v cannot be part of an object", v.Path(), v.Kind())
}

func structToGo(v cue.Value) (any, error) {
	it, err := v.Fields()
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for it.Next() {
		value, err := toGo(it.Value())
		if err != nil {
			return nil, err
		}
		out[it.Selector().Unquoted()] = value
	}
	return out, nil
}

func listToGo(v cue.Value) (any, error) {
	it, err := v.List()
	if err != nil {
		return nil, err
	}
	out := []any{}
	for it.Next() {
		value, err := toGo(it.Value())
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

// floatToGo returns an integral number as an integer: 3.0 and 3 are the same
// number to JSON, but not to a schema that wants an integer.
func floatToGo(v cue.Value) (any, error) {
	f, err := v.Float64()
	if err != nil {
		return nil, err
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), nil
	}
	return f, nil
}
