package vet

import (
	"fmt"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"
	"cuelang.org/go/encoding/jsonschema"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CustomKinds returns the types of the kinds that a CustomResourceDefinition defines, as CUE, by "GROUP/VERSION/KIND"; a
// source.Loader takes them. A type is closed, as an API server drops what it does not have, and has the definition's
// bounds and required fields, but no rules in CEL. It errors if the definition cannot be read.
func CustomKinds(definition map[string]any) (map[string]string, error) {
	found, err := jsonschema.ExtractCRDs(cuecontext.New().Encode(definition), nil)
	if err != nil {
		return nil, fmt.Errorf("reading the CustomResourceDefinition: %w", err)
	}
	out := map[string]string{}
	for _, d := range found {
		kind := d.Data.Spec.Names.Kind
		if !ast.IsValidIdent("#" + kind) {
			continue // the API server refuses it
		}
		for version, file := range d.Versions {
			text, err := format.Node(closedFile(file, kind))
			if err != nil {
				return nil, fmt.Errorf("version %s of kind %s: %w", version, kind, err)
			}
			out[schema.GroupVersion{Group: d.Data.Spec.Group, Version: version}.String()+"/"+kind] = string(text)
		}
	}
	return out, nil
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
			case "metadata":
			case embedded: // objects within the object have it
				out.Decls = append(out.Decls, d)
			default:
				is.Elts = append(is.Elts, d)
			}
		default:
			is.Elts = append(is.Elts, d)
		}
	}
	is.Elts = append(is.Elts, &ast.Field{Label: ast.NewIdent("metadata"), Constraint: token.OPTION, Value: ast.NewStruct(&ast.Ellipsis{})})
	out.Decls = append(out.Decls, &ast.Field{Label: ast.NewIdent("#" + kind), Value: is})
	return out
}
