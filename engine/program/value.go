package program

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"

	"cuelang.org/go/cue"

	"operetta.dev/engine/fault"
)

// lookup returns what a value has at a path of fields, which may not exist.
func lookup(v cue.Value, path ...string) cue.Value {
	sels := make([]cue.Selector, len(path))
	for i, name := range path {
		sels[i] = cue.Str(name)
	}
	return v.LookupPath(cue.MakePath(sels...))
}

// data returns a concrete value as the Go types that Kubernetes' unstructured
// objects are made of: map[string]any, []any, string, bool, int64, float64, nil.
// It errors on what is not concrete, and with a Fault on what is no such data.
//
// Walking the value costs a fraction of marshalling it to JSON and back, which
// also turns integers into floats.
func data(v cue.Value) (any, error) {
	// An error in a hidden field is in no data, and still an error.
	if err := v.Err(); err != nil {
		return nil, err
	}
	return toGo(v)
}

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
		return intToGo(v)
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
	return nil, unfit(v, fmt.Sprintf("a value of kind %v cannot be part of an object", v.Kind()))
}

// unfit is the fault of a value that is complete and no data of Kubernetes.
func unfit(v cue.Value, message string) fault.Fault {
	return fault.Fault{Position: fault.At(v.Pos()), Path: v.Path().String(), Message: message}
}

func structToGo(v cue.Value) (any, error) {
	// Concrete makes it an error that a comprehension is not decided.
	it, err := v.Fields(cue.Concrete(true))
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

// intToGo returns an integer; JSON has larger ones, Kubernetes has not.
func intToGo(v cue.Value) (any, error) {
	// Not v.Int64, which takes the smallest of them for too small.
	var i big.Int
	if _, err := v.Int(&i); err != nil {
		return nil, err
	}
	if !i.IsInt64() {
		return nil, unfit(v, fmt.Sprintf("the integer %v does not fit into 64 bits", v))
	}
	return i.Int64(), nil
}

// floatToGo returns an integral number as an integer: 3.0 and 3 are the same
// number to JSON, but not to a schema that wants an integer.
func floatToGo(v cue.Value) (any, error) {
	f, err := v.Float64()
	if err != nil {
		return nil, unfit(v, fmt.Sprintf("the number %v does not fit into 64 bits", v))
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), nil
	}
	return f, nil
}
