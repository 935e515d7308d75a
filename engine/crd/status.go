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

// status is the schema of .status: the fields of the engine, and those of the author.
func (g *generator) status(at site, v cue.Value) *schemaProps {
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
		g.fault(at.in(v), "a status is a struct: "+message(err), "")
		return schema
	}
	for fields.Next() {
		if fields.Selector().LabelType() != cue.StringLabel {
			continue // an error of the package, which its evaluation reports
		}
		name := fields.Selector().Unquoted()
		at := at.field(name).in(fields.Value())
		if _, taken := schema.Properties[name]; taken {
			g.fault(at, "the engine reports a status field of this name itself",
				"choose another name; taken are "+strings.Join(slices.Sorted(maps.Keys(engineStatus())), ", "))
			continue
		}
		schema.Properties[name] = *g.observed(at, fields.Value())
	}
	undecided(v, schema)
	return schema
}

// undecided adds the fields of v that are there only when something is observed, as in
// if live.web != _|_ {url: …}. Without them, the API server would drop what is reported.
func undecided(v cue.Value, schema *schemaProps) {
	for _, l := range literals(v) {
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
					schema.Properties[name] = *preservedAs("")
				}
			}
		}
	}
}

// labelOf returns the name of a declared field, "" if it is not one of the data, and
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

// observed infers the type of a status field from the value that is computed for it.
// A status is output, so it has no bounds, no defaults and nothing required; and it must never
// be refused, so what is not known for certain is kept as it is.
func (g *generator) observed(at site, v cue.Value) *schemaProps {
	schema := &schemaProps{}
	kind := knownKind(v, 0)
	switch {
	case !g.bounded(at):
		return preservedAs("")
	case kind&^cue.NullKind == cue.StructKind:
		schema = g.observedStruct(at, v)
	case kind&^cue.NullKind == cue.ListKind:
		schema.Type = "array"
		schema.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: g.observedElement(at.elements(), v)}
	case kind == cue.IntKind|cue.StringKind:
		schema.XIntOrString = true
	case scalarTypes[kind&^cue.NullKind] != "":
		schema.Type = scalarTypes[kind&^cue.NullKind]
	default:
		schema = preservedAs("")
	}
	schema.Nullable = kind&cue.NullKind != 0 && schema.Type != ""
	schema.Description = describe(v)
	marks := g.marks(at, v, isShape)
	if schema.Items != nil {
		schema.Items.Schema.Required = marks.listMapKeys // all that is ever required in a status
	}
	g.mark(at, schema, marks)
	return schema
}

// isShape reports whether a status takes over how that is kept to which it refers: a
// definition says it of a type, and a field, such as of the spec, of itself.
func isShape(reference cue.Value) bool {
	_, path := reference.ReferencePath()
	return slices.ContainsFunc(path.Selectors(), cue.Selector.IsDefinition)
}

// observedElement is the schema of the elements of a list, open or not.
func (g *generator) observedElement(at site, v cue.Value) *schemaProps {
	if element := v.LookupPath(cue.MakePath(cue.AnyIndex)); element.Exists() {
		return g.observed(at, element)
	}
	var found *schemaProps
	elements, err := v.List()
	for err == nil && elements.Next() {
		element := g.observed(at, elements.Value())
		if found != nil && !reflect.DeepEqual(found, element) {
			return preservedAs("")
		}
		found = element
	}
	if found == nil {
		return preservedAs("")
	}
	return found
}

var scalarTypes = map[cue.Kind]string{
	cue.BoolKind: "boolean", cue.IntKind: "integer", cue.FloatKind: "number",
	cue.NumberKind: "number", cue.StringKind: "string",
}

func (g *generator) observedStruct(at site, v cue.Value) *schemaProps {
	fields, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil || at.depth > maxDepth {
		return preservedAs("object")
	}
	schema := &schemaProps{Type: "object"}
	schema.Properties = map[string]schemaProps{}
	for fields.Next() {
		sel := fields.Selector()
		if sel.ConstraintType() == cue.PatternConstraint || sel.LabelType() != cue.StringLabel {
			return preservedAs("object")
		}
		name := sel.Unquoted()
		schema.Properties[name] = *g.observed(at.field(name), fields.Value())
	}
	undecided(v, schema)
	if len(schema.Properties) == 0 {
		return preservedAs("object")
	}
	return schema
}

// knownKind is the kind that v has or will have, or that of its alternatives: while
// nothing is deployed, *live.web.status.replicas | 0 is either unknown or a number.
func knownKind(v cue.Value, depth int) cue.Kind {
	if kind := v.IncompleteKind(); kind != cue.BottomKind || depth > maxChain {
		return kind
	}
	var kind cue.Kind
	switch op, args := v.Expr(); op {
	case cue.OrOp:
		for _, a := range args {
			kind |= knownKind(a, depth+1)
		}
	case cue.InterpolationOp:
		kind = cue.StringKind
	case cue.BooleanAndOp, cue.BooleanOrOp, cue.EqualOp, cue.NotOp, cue.NotEqualOp:
		kind = cue.BoolKind
	}
	return kind
}

func preservedAs(kind string) *schemaProps {
	return &schemaProps{Type: kind, XPreserveUnknownFields: new(true)}
}
