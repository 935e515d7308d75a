package vet

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/encoding/jsonschema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CustomKinds returns the types of the kind that a CustomResourceDefinition defines, as CUE, by "GROUP/VERSION/KIND"; a
// source.Loader takes them. A type is closed, as an API server drops what it does not have, and has the definition's
// bounds and required fields, but no rules in CEL. A version without a schema has no type. It errors, beside the other
// types, if CUE cannot read a schema.
func CustomKinds(definition map[string]any) (map[string]string, error) {
	u := &unstructured.Unstructured{Object: definition}
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	out := map[string]string{}
	var failed []error
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		properties, has, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if !has || name == "" || !ast.IsValidIdent("#"+kind) {
			continue
		}
		gvk := schema.GroupVersionKind{Group: group, Version: name, Kind: kind}
		text, err := typeOf(gvk, properties)
		if err != nil {
			failed = append(failed, fmt.Errorf("version %s: %w", name, err))
			continue
		}
		out[gvk.GroupVersion().String()+"/"+kind] = text
	}
	return out, errors.Join(failed...)
}

// typeOf returns the type of a kind by its schema.
func typeOf(kind schema.GroupVersionKind, properties map[string]any) (string, error) {
	file, err := jsonschema.Extract(cuecontext.New().Encode(checkable(properties)), &jsonschema.Config{
		PkgName: "kinds", SingleRoot: true, DefaultVersion: jsonschema.VersionKubernetesCRD,
	})
	if err != nil {
		return "", err
	}
	text, err := format.Node(closedFile(file, kind.Kind))
	return string(text), err
}

// alternatives are the keywords of a schema that say which fields go together, and how many there are. CUE says of a value
// that breaks one, and of some that do not, that nothing would do.
var alternatives = []string{"oneOf", "allOf", "not", "anyOf", "minProperties", "maxProperties"}

// checkable returns a schema without what cannot be checked here: alternatives, and that a field is required which
// the API server fills in.
func checkable(schema map[string]any) map[string]any {
	out := maps.Clone(schema)
	for _, key := range []string{"items", "additionalProperties"} {
		if below, is := schema[key].(map[string]any); is {
			out[key] = checkable(below)
		}
	}
	properties, has := schema["properties"].(map[string]any)
	if has {
		properties = maps.Clone(properties)
		for name, property := range properties {
			if below, is := property.(map[string]any); is {
				properties[name] = checkable(below)
			}
		}
		out["properties"] = properties
	}
	if out["x-kubernetes-int-or-string"] != true {
		for _, key := range alternatives {
			delete(out, key)
		}
	}
	required, has := out["required"].([]any)
	if !has {
		return out
	}
	required = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
		text, _ := name.(string)
		property, _ := properties[text].(map[string]any)
		_, filled := property["default"]
		return filled
	})
	if out["required"] = required; len(required) == 0 {
		delete(out, "required")
	}
	return out
}

// embedded is the hidden field in which CUE keeps what each object has.
const embedded = "_embeddedResource"

// closedFile returns a file in which everything but the imports is in the definition of a kind. The metadata are
// open: the engine completes them, and every kind has the same.
func closedFile(file *ast.File, kind string) *ast.File {
	out := &ast.File{}
	is := &ast.StructLit{}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.Package:
		case *ast.ImportDecl:
			out.Decls = append(out.Decls, d)
		case *ast.EmbedDecl:
			if name, ok := d.Expr.(*ast.Ident); !ok || name.Name != embedded {
				is.Elts = append(is.Elts, d)
			}
		case *ast.Field:
			switch name, _, _ := ast.LabelName(d.Label); name {
			case "metadata", "apiVersion", "kind": // every kind has them, whether the schema says so or not
			case embedded: // objects within the object have it
				out.Decls = append(out.Decls, d)
			default:
				is.Elts = append(is.Elts, d)
			}
		default:
			is.Elts = append(is.Elts, d)
		}
	}
	for _, name := range []string{"apiVersion", "kind"} {
		is.Elts = append(is.Elts, &ast.Field{Label: ast.NewIdent(name), Constraint: token.OPTION, Value: ast.NewIdent("string")})
	}
	is.Elts = append(is.Elts, &ast.Field{Label: ast.NewIdent("metadata"), Constraint: token.OPTION, Value: ast.NewStruct(&ast.Ellipsis{})})
	out.Decls = append(out.Decls, &ast.Field{Label: ast.NewIdent("#" + kind), Value: is})
	return out
}
