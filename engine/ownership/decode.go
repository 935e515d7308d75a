package ownership

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	strictjson "sigs.k8s.io/json"
)

// An UnreadableError says which part of an inventory cannot be read. To guess would
// lose objects: of a kind that is not served, for one, there are none.
type UnreadableError struct {
	// Path is where it is, such as [0].objects[1].kind.
	Path    string
	Problem string
}

// Error says what is wrong, and where.
func (e *UnreadableError) Error() string { return strings.TrimSpace(e.Path + " " + e.Problem) }

// InventoryOf returns the inventory in the status of a resource, or none of nil. It errors as Decode does.
func InventoryOf(u *unstructured.Unstructured) (Inventory, error) {
	if u == nil {
		return nil, nil
	}
	stored, _, _ := unstructured.NestedSlice(u.Object, "status", "inventory")
	return Decode(stored)
}

// Decode returns the inventory that is stored as JSON values. It errors with an UnreadableError,
// also for fields that only a later version can have written: their meaning is not known here, and
// the next write would lose them. Anybody may have written the values: see Check.
func Decode(values []any) (Inventory, error) {
	if len(values) > maxComponents {
		return nil, &UnreadableError{"", fmt.Sprintf("has more than %d components", maxComponents)}
	}
	var out Inventory
	for i, v := range values {
		g, plain := plainGroup(v)
		if !plain {
			var err error
			if g, err = decodeGroup(fmt.Sprintf("[%d]", i), v); err != nil {
				return nil, err
			}
		}
		out = append(out, g)
	}
	if err := out.Check(); err != nil {
		return nil, err
	}
	return out, nil
}

// decodeGroup decodes the parts one by one, as an error of the decoder has no indices.
func decodeGroup(path string, v any) (Group, error) {
	var raw struct {
		Component string            `json:"component"`
		DependsOn []json.RawMessage `json:"dependsOn"`
		Objects   []json.RawMessage `json:"objects"`
	}
	if err := DecodeStrict(path, v, &raw); err != nil {
		return Group{}, err
	}
	g := Group{Component: raw.Component}
	for i, v := range raw.DependsOn {
		var to string
		if err := DecodeStrict(fmt.Sprintf("%s.dependsOn[%d]", path, i), v, &to); err != nil {
			return g, err
		}
		g.DependsOn = append(g.DependsOn, to)
	}
	for i, v := range raw.Objects {
		var e Entry
		if err := DecodeStrict(fmt.Sprintf("%s.objects[%d]", path, i), v, &e); err != nil {
			return g, err
		}
		g.Objects = append(g.Objects, e)
	}
	return g, nil
}

// DecodeStrict decodes a JSON value at a path of a status. It errors with an UnreadableError if the
// value has another type, or fields that only a later version can have written.
func DecodeStrict(path string, value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return &UnreadableError{path, "is not JSON"}
	}
	unknown, err := strictjson.UnmarshalStrict(text, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field != "" {
			path += "." + wrong.Field
		}
		return &UnreadableError{path, notOfType[wrong.Type.Kind()]}
	}
	if err != nil {
		return &UnreadableError{path, "is not JSON"}
	}
	for _, err := range unknown {
		if field, ok := errors.AsType[strictjson.FieldError](err); ok {
			return &UnreadableError{path + "." + quoted(field.FieldPath()), "is a field of a later version"}
		}
	}
	return nil
}

// notOfType says that a value is not of the type that its field has.
var notOfType = map[reflect.Kind]string{
	reflect.Struct: "is not an object", reflect.Slice: "is not a list", reflect.String: "is not a text", reflect.Bool: "is neither true nor false",
}

// quoted returns a field's name for a message. Anybody may have written it, so that one that is no
// name is quoted and cut.
func quoted(field string) string {
	if wrongName(field) == "" {
		return field
	}
	return strconv.QuoteToASCII(field[:min(len(field), maxName)])
}
