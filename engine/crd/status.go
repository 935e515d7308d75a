package crd

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// statusSchema returns the schema of .status: the fields of the engine, and those of the author.
func (g *generator) statusSchema(at location, v cue.Value) *schemaProps {
	schema := &schemaProps{
		Type:        "object",
		Description: "What the operator observed. It is written by the operator only.",
		Properties:  engineStatus(),
	}
	if !v.Exists() {
		return schema
	}
	fields, err := v.Fields(cue.Optional(true))
	if err != nil {
		g.fault(at.positionedAt(v), "the status must be a struct: "+errorMessage(err), "")
		return schema
	}
	for fields.Next() {
		if fields.Selector().LabelType() != cue.StringLabel {
			continue // an error of the package, which its evaluation reports
		}
		name := fields.Selector().Unquoted()
		at := at.field(name).positionedAt(fields.Value())
		if _, taken := schema.Properties[name]; taken {
			g.fault(at, "the engine writes a status field of this name itself",
				"choose another name; the engine writes "+strings.Join(slices.Sorted(maps.Keys(engineStatus())), ", "))
			continue
		}
		schema.Properties[name] = *g.statusFieldSchema(at, fields.Value())
	}
	addConditionalFields(v, schema)
	return schema
}

// addConditionalFields adds the fields of v that exist only after something is observed, as in
// if live.web != _|_ {url: …}. Without them, the API server would drop the values.
func addConditionalFields(v cue.Value, schema *schemaProps) {
	for _, l := range structLiterals(v) {
		for _, e := range l.Elts {
			c, ok := e.(*ast.Comprehension)
			if !ok {
				continue
			}
			inner, ok := c.Value.(*ast.StructLit)
			if !ok {
				continue
			}
			for _, d := range inner.Elts {
				name, known := labelOf(d)
				if !known {
					schema.XPreserveUnknownFields = new(true)
				} else if _, there := schema.Properties[name]; !there && name != "" {
					schema.Properties[name] = *preserveUnknownFields("")
				}
			}
		}
	}
}

// labelOf returns the name of a declared field, "" if it is a definition or a hidden field, and
// false if the name is computed.
func labelOf(d ast.Decl) (string, bool) {
	f, ok := d.(*ast.Field)
	if !ok {
		_, nested := d.(*ast.Comprehension)
		_, embedded := d.(*ast.EmbedDecl)
		return "", !nested && !embedded
	}
	name, isIdent, err := ast.LabelName(f.Label)
	if err != nil || isIdent && strings.HasPrefix(name, "$") {
		return "", false
	}
	if isIdent && (strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#")) {
		return "", true
	}
	return name, true
}

// statusFieldSchema infers the type of a status field from the value that the package computes.
// A status is output, so it has no bounds, no defaults and no required fields. The API server
// must never reject it, so a value whose type is uncertain has no schema and is preserved.
func (g *generator) statusFieldSchema(at location, v cue.Value) *schemaProps {
	schema := &schemaProps{}
	kind := inferKind(v, 0)
	switch {
	case !g.withinLimits(at):
		return preserveUnknownFields("")
	case kind&^cue.NullKind == cue.StructKind:
		schema = g.statusStructSchema(at, v)
	case kind&^cue.NullKind == cue.ListKind:
		schema.Type = "array"
		schema.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: g.statusElementSchema(at.elements(), v)}
	case kind == cue.IntKind|cue.StringKind:
		schema.XIntOrString = true
	case scalarTypes[kind&^cue.NullKind] != "":
		schema.Type = scalarTypes[kind&^cue.NullKind]
	default:
		schema = preserveUnknownFields("")
	}
	schema.Nullable = kind&cue.NullKind != 0 && schema.Type != ""
	schema.Description = descriptionOf(v)
	attrs := g.readAttributes(at, v, throughDefinition)
	if schema.Items != nil {
		schema.Items.Schema.Required = attrs.listMapKeys // nothing else is required in a status
	}
	g.applyAttributes(at, schema, attrs)
	return schema
}

// throughDefinition reports whether a reference goes through a definition. A status takes over
// the attributes of a definition, because they describe a type; those of a field, such as one of
// the spec, describe only that field.
func throughDefinition(reference cue.Value) bool {
	_, path := reference.ReferencePath()
	return slices.ContainsFunc(path.Selectors(), cue.Selector.IsDefinition)
}

// statusElementSchema returns the schema of the elements of a list, open or not.
func (g *generator) statusElementSchema(at location, v cue.Value) *schemaProps {
	if element := v.LookupPath(cue.MakePath(cue.AnyIndex)); element.Exists() {
		return g.statusFieldSchema(at, element)
	}
	var found *schemaProps
	elements, err := v.List()
	for err == nil && elements.Next() {
		element := g.statusFieldSchema(at, elements.Value())
		if found != nil && !reflect.DeepEqual(found, element) {
			return preserveUnknownFields("")
		}
		found = element
	}
	if found == nil {
		return preserveUnknownFields("")
	}
	return found
}

func (g *generator) statusStructSchema(at location, v cue.Value) *schemaProps {
	fields, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil || at.depth > maxDepth {
		return preserveUnknownFields("object")
	}
	schema := &schemaProps{Type: "object"}
	schema.Properties = map[string]schemaProps{}
	for fields.Next() {
		sel := fields.Selector()
		if sel.ConstraintType() == cue.PatternConstraint || sel.LabelType() != cue.StringLabel {
			return preserveUnknownFields("object")
		}
		name := sel.Unquoted()
		schema.Properties[name] = *g.statusFieldSchema(at.field(name), fields.Value())
	}
	addConditionalFields(v, schema)
	if len(schema.Properties) == 0 {
		return preserveUnknownFields("object")
	}
	return schema
}

// inferKind returns the kind that v has or will have, or the kinds of its alternatives: while
// nothing is deployed, *live.web.status.replicas | 0 is either unknown or a number.
func inferKind(v cue.Value, depth int) cue.Kind {
	if kind := v.IncompleteKind(); kind != cue.BottomKind || depth > maxChain {
		return kind
	}
	var kind cue.Kind
	switch op, args := v.Expr(); op {
	case cue.OrOp:
		for _, a := range args {
			kind |= inferKind(a, depth+1)
		}
	case cue.InterpolationOp:
		kind = cue.StringKind
	case cue.BooleanAndOp, cue.BooleanOrOp, cue.EqualOp, cue.NotOp, cue.NotEqualOp:
		kind = cue.BoolKind
	}
	return kind
}

func preserveUnknownFields(kind string) *schemaProps {
	return &schemaProps{Type: kind, XPreserveUnknownFields: new(true)}
}
