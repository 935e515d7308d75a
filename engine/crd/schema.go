package crd

import (
	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"operetta.dev/engine/fault"
)

type schemaProps = apiextensionsv1.JSONSchemaProps

const (
	// maxDepth bounds the nesting. No real schema is that deep, and the stack holds far
	// more.
	maxDepth = 64
	// maxNodes bounds a schema that is wide instead of deep. A CRD with that many nodes
	// would not fit into etcd.
	maxNodes = 20_000
	// maxRecursion is how often a literal may be nested in itself. A generic definition
	// (#Optional: {value: _}) may legitimately be; an infinite one always is.
	maxRecursion = 4
)

// generator walks the schemas of one version and collects faults.
type generator struct {
	faults []fault.Fault
	nodes  int
	// pending are the rules of structs that are not complete yet, translated those that were made, and inCUE what only CUE
	// knows.
	pending    []pendingRule
	translated []TranslatedRule
	inCUE      []CUEOnlyConstraint
	// bounded are the bounds by rules of each field.
	bounded map[string]bounds
	// isStatus is true within the status, where nothing becomes a rule.
	isStatus bool
}

func (g *generator) fault(at location, problem, hint string) {
	g.faults = append(g.faults, faultAt(at.pos, at.path, problem, hint))
}

// schema returns the schema of v, or nil after it has reported why there is none. A value
// with @crd(preserveUnknownFields) always has a schema.
func (g *generator) schema(at location, v cue.Value) *schemaProps { return g.schemaOf(at, v, v) }

// schemaOf is schema for a field of which rules say a part: declared is all of it, and v the rest.
func (g *generator) schemaOf(at location, declared, v cue.Value) *schemaProps {
	if !g.withinLimits(at) {
		return nil
	}
	attrs := g.readAttributes(at, declared, nil)
	before := len(g.faults)
	schema := g.convert(at, v, attrs)
	if schema == nil && attrs.preserve {
		g.faults = g.faults[:before]
		schema = preserveFieldsOf(v)
	}
	if schema == nil {
		return nil
	}
	schema.Description = descriptionOf(declared)
	g.applyAttributes(at, schema, attrs)
	return schema
}

// convert returns the structural schema of v without description and attributes, or nil
// after it has reported why there is none.
func (g *generator) convert(at location, v cue.Value, attrs attributes) *schemaProps {
	p := partsOf(v)
	base := p.base(v)
	if g.reportRecursion(at, v, base, attrs) {
		return nil
	}
	if d := g.findDependency(at, v); d.name != "" {
		g.reportDependency(at, d)
		return nil
	}
	kind := base.IncompleteKind()
	var schema *schemaProps
	switch kind &^ cue.NullKind {
	case cue.BottomKind:
		if !g.isStatus && isUndecided(at, v) {
			schema = g.structSchema(at, v, p, attrs)
			break
		}
		g.reportBottom(at, v, base)
	case cue.StructKind:
		schema = g.structSchema(at, v, p, attrs)
	case cue.ListKind:
		schema = g.listSchema(at, p, attrs, base)
	case cue.TopKind &^ cue.NullKind:
		g.reportAnyType(at, v)
	default:
		schema = g.scalarSchema(at, v)
	}
	if schema != nil {
		schema.Nullable = p.null || kind&cue.NullKind != 0
	}
	return schema
}

// isUndecided reports whether a struct is an error only because its comprehensions depend on the user's input, and
// whether all of them become rules.
func isUndecided(at location, v cue.Value) bool {
	literals := structLiterals(v)
	found, all := conditionals(at.enclosedBy(literals), literals)
	return all && len(found) > 0
}

// withinLimits reports whether one more node is allowed. It adds a fault for the first node
// that is not.
func (g *generator) withinLimits(at location) bool {
	g.nodes++
	switch {
	case g.nodes == maxNodes:
		g.fault(at, "the schema is too large for a CRD", "write @crd(preserveUnknownFields) on the part that the API server need not know")
	case g.nodes > maxNodes:
	case at.depth > maxDepth:
		g.fault(at, "the schema is nested too deeply", "write @crd(preserveUnknownFields) on the part that the API server need not know")
	default:
		return true
	}
	return false
}

// reportBottom adds a fault for a value that is an error, or that allows only null. If a
// struct is an error because of its fields, the faults are those of the fields.
func (g *generator) reportBottom(at location, v, base cue.Value) {
	before := len(g.faults)
	if literals := structLiterals(v); len(literals) > 0 {
		inside := at.enclosedBy(literals)
		g.reportConditionalFields(inside, literals)
		g.addFields(inside, v, &schemaProps{})
	}
	err := v.Err()
	if err == nil {
		err = base.Err()
	}
	switch {
	case len(g.faults) > before:
	case err != nil:
		g.fault(at, "no value can be valid: "+errorMessage(err), "")
	default:
		g.fault(at, "only null is valid", "write the type that it can have otherwise, as in null | string")
	}
}

// reportAnyType adds a fault for a value of any type, such as _. A CRD can store such a value
// but cannot describe it.
func (g *generator) reportAnyType(at location, v cue.Value) {
	if op, args := v.Eval().Expr(); op == cue.CallOp {
		g.unsupported(at, callName(args[0]))
		return
	}
	g.fault(at, "any value is valid, and the API server would drop all of it",
		"write its type, or @crd(preserveUnknownFields) to keep whatever is there")
}

// preserveFieldsOf returns the schema of v with x-kubernetes-preserve-unknown-fields and
// without any validation.
func preserveFieldsOf(v cue.Value) *schemaProps {
	switch v.IncompleteKind() {
	case cue.StructKind:
		return preserveUnknownFields("object")
	case cue.ListKind:
		return &schemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: preserveUnknownFields("")}}
	}
	return preserveUnknownFields("")
}
