package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"operetta.dev/schemas"
)

// rules are what the comments of the Go types say of them, by the type's name.
type rules struct {
	Required map[string][]string `json:"required"`
	Enums    map[string][]string `json:"enums"`
}

// known are the rules that are part of the binary: that they cannot be read is a mistake
// in it.
var known = sync.OnceValue(func() rules {
	var out rules
	if err := json.Unmarshal(schemas.Rules(), &out); err != nil {
		panic(fmt.Errorf("reading the rules of the Kubernetes types: %w", err))
	}
	return out
})

// generated returns what the generated rules say of an object.
func generated(decoded runtime.Object, u *unstructured.Unstructured) field.ErrorList {
	w := &walk{rules: known()}
	t := reflect.TypeOf(decoded).Elem()
	content := withoutStatus(u)
	delete(content, "metadata") // it is checked by itself, and for every kind
	if _, has := membersOf(t)["spec"]; has && content["spec"] == nil {
		content["spec"] = map[string]any{} // as it is for the API server
	}
	w.value(t, content, nil)
	return w.faults
}

// walk goes through an object and its type at once.
type walk struct {
	rules  rules
	faults field.ErrorList
}

func (w *walk) value(t reflect.Type, v any, at *field.Path) {
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

// fields goes through a struct or a map.
func (w *walk) fields(t reflect.Type, name string, v map[string]any, at *field.Path) {
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
		if empty(v[required]) {
			w.faults = append(w.faults, field.Required(child(at, required), ""))
		}
	}
	members := membersOf(t)
	for _, k := range sortedKeys(v) {
		if of, ok := members[k]; ok {
			w.value(of, v[k], child(at, k))
		}
	}
}

// child is a field of an object or below it.
func child(at *field.Path, name string) *field.Path {
	if at == nil {
		return field.NewPath(name)
	}
	return at.Child(name)
}

// empty reports whether a value is as good as none, where one is required.
func empty(v any) bool {
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

var memberCache sync.Map // reflect.Type to map[string]reflect.Type

// membersOf returns the types of a struct's fields by their names in JSON.
func membersOf(t reflect.Type) map[string]reflect.Type {
	if cached, ok := memberCache.Load(t); ok {
		if members, ok := cached.(map[string]reflect.Type); ok {
			return members
		}
	}
	out := map[string]reflect.Type{}
	if t.Kind() == reflect.Struct {
		addMembers(t, out)
	}
	memberCache.Store(t, out)
	return out
}

func addMembers(t reflect.Type, into map[string]reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			addMembers(f.Type, into)
		case name != "" && name != "-":
			into[name] = f.Type
		}
	}
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
