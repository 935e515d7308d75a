package program

import (
	"cmp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/token"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/source"
)

// TypesPath is the import path below which the Kubernetes types are.
const TypesPath = "operetta.dev/schemas/k8s/"

// Kinds are the complete Kubernetes types, by kind. They are not safe for concurrent use.
type Kinds struct {
	builder  *builder
	context  *cue.Context
	packages map[string]cue.Value
	// custom are the types of custom kinds, as text, and compiled those that were asked for.
	custom   map[string]string
	compiled map[string]cue.Value
	structs  map[string]typeFields
}

// typeFields are the fields of a struct of a type.
type typeFields struct {
	values          map[string]cue.Value
	names, required []string
}

// NewKinds returns the types that a snapshot with the complete ones brings.
func NewKinds(complete *source.Snapshot) *Kinds {
	return &Kinds{
		builder:  &builder{snapshot: complete, context: build.NewContext()},
		context:  cuecontext.New(),
		packages: map[string]cue.Value{},
		custom:   complete.Kinds(),
		compiled: map[string]cue.Value{},
		structs:  map[string]typeFields{},
	}
}

// fields returns the fields of a struct of a type. It remembers them by the struct's place in
// the type, because CUE computes them again for each call.
func (k *Kinds) fields(key string, schema cue.Value) typeFields {
	if known, ok := k.structs[key]; ok {
		return known
	}
	out := typeFields{values: map[string]cue.Value{}}
	it, err := schema.Fields(cue.Optional(true))
	for err == nil && it.Next() {
		name := it.Selector().Unquoted()
		out.values[name] = it.Value()
		out.names = append(out.names, name)
		if it.Selector().ConstraintType() == cue.RequiredConstraint {
			out.required = append(out.required, name)
		}
	}
	k.structs[key] = out
	return out
}

// customType returns the type of a custom kind, if its definition was given.
func (k *Kinds) customType(kind schema.GroupVersionKind) (cue.Value, bool) {
	key := kind.GroupVersion().String() + "/" + kind.Kind
	text, given := k.custom[key]
	if !given {
		return cue.Value{}, false
	}
	out, known := k.compiled[key]
	if !known {
		out = k.context.CompileString(text).LookupPath(cue.MakePath(cue.Def("#" + kind.Kind)))
		k.compiled[key] = out
	}
	return out, out.Exists()
}

// Of returns the type of a kind, if there is one.
func (k *Kinds) Of(kind schema.GroupVersionKind) (cue.Value, bool) {
	if custom, given := k.customType(kind); given {
		return custom, true
	}
	name := "#" + kind.Kind
	if !ast.IsValidIdent(name) { // cue.Def panics
		return cue.Value{}, false
	}
	group, _, _ := strings.Cut(cmp.Or(kind.Group, "core"), ".") // networking.k8s.io is in networking
	path := TypesPath + group + "/" + kind.Version
	types, known := k.packages[path]
	if !known {
		if inst := k.builder.load(token.NoPos, path); inst != nil && inst.Err == nil {
			types = k.context.BuildInstance(inst)
		}
		k.packages[path] = types
	}
	if !types.Exists() {
		return cue.Value{}, false
	}
	out := types.LookupPath(cue.MakePath(cue.Def(name)))
	is := stringOr(Lookup(out, "apiVersion"), "")
	return out, out.Exists() && is == kind.GroupVersion().String()
}

// ofObject returns the type of an object, if there is one that it is checked against.
func (k *Kinds) ofObject(kind schema.GroupVersionKind, object cue.Value) (cue.Value, bool) {
	if custom, given := k.customType(kind); given {
		return custom, true
	}
	if !typed(object) { // to read the types of a group takes long
		return cue.Value{}, false
	}
	return k.Of(kind)
}

// typed reports whether the author made an object from a Kubernetes type: then the type
// declares its kind as well. Other objects are not checked, because the author may know a
// newer version of Kubernetes.
func typed(object cue.Value) bool {
	kind := Lookup(object, "kind")
	if !kind.Exists() {
		return false
	}
	_, args := kind.Expr()
	return slices.ContainsFunc(append(args, kind), func(v cue.Value) bool {
		return strings.Contains(v.Pos().Filename(), "schemas/k8s/")
	})
}
