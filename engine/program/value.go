package program

import (
	"encoding/base64"
	"fmt"
	"math/big"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/template"
)

// Lookup returns the value at a path of fields. It may not exist.
func Lookup(v cue.Value, path ...string) cue.Value {
	sels := make([]cue.Selector, len(path))
	for i, name := range path {
		sels[i] = cue.Str(name)
	}
	return v.LookupPath(cue.MakePath(sels...))
}

// data returns a concrete value as the Go types that Kubernetes' unstructured
// objects are made of: map[string]any, []any, string, bool, int64, float64, nil.
// It errors if the value is not concrete, and with a Fault if the value cannot be represented
// as JSON.
//
// Walking the value costs a fraction of marshalling it to JSON and back, which
// also turns integers into floats.
func data(v cue.Value) (any, error) {
	// Hidden fields are not output, but an error in one must still be reported.
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

// unfit returns the fault of a concrete value that cannot be part of a Kubernetes object.
func unfit(v cue.Value, message string) fault.Fault {
	return fault.Fault{Position: fault.PositionAt(v.Pos()), Path: v.Path().String(), Message: message}
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
	if n, ok := template.Integer(f); ok {
		return n, nil
	}
	return f, nil
}

// refOf returns the known part of the identity of an incomplete object. If the namespace is set
// but not known yet, the name is left out as well.
func refOf(v cue.Value) object.Ref {
	at := func(path ...cue.Selector) string { return stringOr(v.LookupPath(cue.MakePath(path...)), "") }
	out := object.Ref{
		GroupVersionKind: schema.FromAPIVersionAndKind(at(cue.Str("apiVersion")), at(cue.Str("kind"))),
		Name:             at(cue.Str("metadata"), cue.Str("name")),
	}
	namespace := Lookup(v, "metadata", "namespace")
	if namespace.Exists() {
		out.Namespace = stringOr(namespace, "")
		if out.Namespace == "" {
			out.Name = ""
		}
	}
	return out
}
