package validate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/schemas"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// rules are the validation rules in the comments of the Go types, by the type's name.
type rules struct {
	Required map[string][]string `json:"required"`
	Enums    map[string][]string `json:"enums"`
}

// loadRules returns the rules, which are embedded in the binary. It panics if they cannot be
// decoded, which is a bug of the build.
var loadRules = sync.OnceValue(func() rules {
	var out rules
	if err := json.Unmarshal(schemas.Rules(), &out); err != nil {
		panic(fmt.Errorf("reading the rules of the Kubernetes types: %w", err))
	}
	return out
})

// generatedRules checks an object against the generated rules.
func generatedRules(decoded runtime.Object, u *unstructured.Unstructured) field.ErrorList {
	w := &walker{rules: loadRules()}
	t := reflect.TypeOf(decoded).Elem()
	content := withoutStatus(u)
	delete(content, "metadata") // Write checks it, for every kind
	if _, has := member(t, "spec"); has && content["spec"] == nil {
		content["spec"] = map[string]any{} // the API server decodes a missing spec as an empty one
	}
	w.value(t, content, nil)
	return w.faults
}

// walker visits an object and its type in parallel.
type walker struct {
	rules  rules
	faults field.ErrorList
}

func (w *walker) value(t reflect.Type, v any, at *field.Path) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := t.PkgPath() + "." + t.Name()
	switch v := v.(type) {
	case string:
		if allowed, isEnum := w.rules.Enums[name]; isEnum {
			w.faults = append(w.faults, supported(at, v, allowed...)...)
		}
	case map[string]any:
		w.fields(t, name, v, at)
	case []any:
		if t.Kind() != reflect.Slice {
			return
		}
		for i, item := range v {
			w.value(t.Elem(), item, at.Index(i))
		}
	}
}

// fields visits a struct or a map.
func (w *walker) fields(t reflect.Type, name string, v map[string]any, at *field.Path) {
	if t.Kind() == reflect.Map {
		for _, k := range sortedKeys(v) {
			w.value(t.Elem(), v[k], at.Key(k))
		}
		return
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for _, required := range w.rules.Required[name] {
		if isUnset(v[required]) {
			w.faults = append(w.faults, field.Required(child(at, required), ""))
		}
	}
	for _, k := range sortedKeys(v) {
		if of, ok := member(t, k); ok {
			w.value(of, v[k], child(at, k))
		}
	}
}

// child returns the path of a field. at is nil for the object itself.
func child(at *field.Path, name string) *field.Path {
	if at == nil {
		return field.NewPath(name)
	}
	return at.Child(name)
}

// isUnset reports whether a value counts as missing if it is required.
func isUnset(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}

// member returns the type of a field of a struct by its JSON name.
func member(t reflect.Type, name string) (reflect.Type, bool) {
	f, ok := value.TypeReflectEntryOf(t).Fields()[name]
	if !ok {
		return nil, false
	}
	return f.GetFrom(reflect.Zero(t)).Type(), true
}

func sortedKeys[K cmp.Ordered, V any](of map[K]V) []K { return slices.Sorted(maps.Keys(of)) }
