package crd

import (
	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"operetta.dev/engine/fault"
)

type schemaProps = apiextensionsv1.JSONSchemaProps

const (
	// maxDepth is far beyond what anybody writes, and far below what a stack holds.
	maxDepth = 64
	// maxNodes bounds a schema that is wide instead of deep. A CRD of so many nodes
	// would not fit into etcd.
	maxNodes = 20_000
	// maxNesting is how often a literal may be within itself: a generic definition
	// (#Optional: {value: _}) may be within itself, an endless one always is.
	maxNesting = 4
)

// generator walks the schemas of one version and collects what it cannot express.
type generator struct {
	faults []fault.Fault
	nodes  int
}

func (g *generator) fault(at site, problem, hint string) {
	g.faults = append(g.faults, faultAt(at.pos, at.path, problem, hint))
}

// schema returns the schema of v, or nil after reporting why there is none. What is
// marked to be kept always has one.
func (g *generator) schema(at site, v cue.Value) *schemaProps {
	if !g.bounded(at) {
		return nil
	}
	marks := g.marks(at, v, func(cue.Value) bool { return true })
	before := len(g.faults)
	schema := g.express(at, v, marks)
	if schema == nil && marks.preserve {
		g.faults = g.faults[:before]
		schema = preserved(v)
	}
	if schema == nil {
		return nil
	}
	schema.Description = describe(v)
	g.mark(at, schema, marks)
	return schema
}

// express says as much about v as a structural schema can.
func (g *generator) express(at site, v cue.Value, marks marks) *schemaProps {
	p := takeApart(v)
	base := p.base(v)
	if g.recursive(at, v, base, marks) {
		return nil
	}
	if d := g.depends(at, v); d.name != "" {
		g.dependent(at, d)
		return nil
	}
	kind := base.IncompleteKind()
	var schema *schemaProps
	switch kind &^ cue.NullKind {
	case cue.BottomKind:
		g.bottom(at, v, base)
	case cue.StructKind:
		schema = g.structure(at, v, p, marks)
	case cue.ListKind:
		schema = g.list(at, p, marks, base)
	case cue.TopKind &^ cue.NullKind:
		g.anything(at, v)
	default:
		schema = g.scalar(at, v)
	}
	if schema != nil {
		schema.Nullable = p.null || kind&cue.NullKind != 0
	}
	return schema
}

// bounded reports the first node that is one too many, and is false from then on.
func (g *generator) bounded(at site) bool {
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

// bottom reports a value that is an error, or null and nothing else. A struct is an
// error if one of its fields is, and then it is the fields that are reported.
func (g *generator) bottom(at site, v, base cue.Value) {
	before := len(g.faults)
	if own := literals(v); len(own) > 0 {
		inside := at.within(own)
		g.conditions(inside, own)
		g.fields(inside, v, &schemaProps{})
	}
	err := v.Err()
	if err == nil {
		err = base.Err()
	}
	switch {
	case len(g.faults) > before:
	case err != nil:
		g.fault(at, "no value can be valid: "+message(err), "")
	default:
		g.fault(at, "only null is valid", "write the type that it can have otherwise, as in null | string")
	}
}

// anything reports a value of any type, such as _, which a CRD can hold but not describe.
func (g *generator) anything(at site, v cue.Value) {
	if op, args := v.Eval().Expr(); op == cue.CallOp {
		g.unsupported(at, callName(args[0]))
		return
	}
	g.fault(at, "any value is valid, and the API server would drop all of it",
		"write its type, or @crd(preserveUnknownFields) to keep whatever is there")
}

// preserved is the schema of what is kept without being described.
func preserved(v cue.Value) *schemaProps {
	schema := &schemaProps{XPreserveUnknownFields: new(true)}
	switch v.IncompleteKind() {
	case cue.StructKind:
		schema.Type = "object"
	case cue.ListKind:
		return &schemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: schema}}
	}
	return schema
}

func isTrue(b *bool) bool { return b != nil && *b }
