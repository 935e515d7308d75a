package crd

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// structure is the schema of a struct: an object with properties, or a map.
func (g *generator) structure(at site, v cue.Value, p parts, marks marks) *schemaProps {
	base := p.base(v)
	if p.alternatives > 1 || !p.covers(base) {
		g.fault(at, "a choice between structs is no structural schema",
			"write each alternative as an optional field of one struct, with "+
				`@crd(rule="has(self.a) != has(self.b)") in it if exactly one must be set`)
		return nil
	}
	schema := &schemaProps{Type: "object"}
	own := literals(v)
	inside := at.within(own)
	g.conditions(inside, own)
	if marks.preserve {
		schema.XPreserveUnknownFields = new(true)
	} else if open(v, own) {
		g.fault(at, "the struct is open (...), and the API server would drop all fields that are not declared",
			"declare them, write a map ([string]: string), or @crd(preserveUnknownFields) to keep whatever is there")
	}
	ok := g.fields(inside, base, schema)
	for _, c := range p.calls {
		ok = g.validator(at, schema, c) && ok
	}
	if !ok {
		return nil
	}
	return schema
}

// conditions reports fields that are there only under a condition on what the user
// fills in. A condition that the package itself decides has been decided.
func (g *generator) conditions(at site, own []*ast.StructLit) {
	for _, l := range own {
		for _, e := range l.Elts {
			c, ok := e.(*ast.Comprehension)
			if !ok {
				continue
			}
			for _, clause := range c.Clauses {
				if d := dependsOn(clause, at); d.name != "" {
					at := at
					at.pos = c.Pos()
					g.fault(at, fmt.Sprintf("whether these fields exist depends on %q", d.name),
						fmt.Sprintf("declare them outside of the condition as optional (cert?: string), with "+
							`@crd(rule="!self.%s || has(self.cert)") in the struct if they are then required`, d.name))
				}
			}
		}
	}
}

// open holds for a struct that accepts any field because its author said so. One that is
// no definition accepts them too, but means nothing by it.
func open(v cue.Value, own []*ast.StructLit) bool {
	return v.Allows(cue.AnyString) && (len(own) == 0 || ellipsis(own))
}

// ellipsis finds a "..." that an author meant. A bare {...} beside another literal says
// no more than "a struct"; schemas/operator says it of every spec.
func ellipsis(own []*ast.StructLit) bool {
	bare := func(l *ast.StructLit) bool { return len(l.Elts) == 1 }
	return slices.ContainsFunc(own, func(l *ast.StructLit) bool {
		return slices.ContainsFunc(l.Elts, func(e ast.Decl) bool {
			_, open := e.(*ast.Ellipsis)
			return open && (len(own) == 1 || !bare(l))
		})
	})
}

// fields adds all fields of v to schema. It goes on after a fault, to report them all.
func (g *generator) fields(at site, v cue.Value, schema *schemaProps) bool {
	fields, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		g.fault(at, message(err), "")
		return false
	}
	before := len(g.faults)
	for fields.Next() {
		sel, value := fields.Selector(), fields.Value()
		switch {
		case sel.LabelType() != cue.StringLabel:
			g.fault(at.in(value), fmt.Sprintf("the label %v is no string", sel), "")
		case sel.ConstraintType() == cue.PatternConstraint:
			g.pattern(at.values().in(value), sel.Pattern(), value, schema)
		default:
			g.property(at.field(sel.Unquoted()).in(value), sel, value, schema)
		}
	}
	slices.Sort(schema.Required)
	if len(schema.Properties) > 0 && schema.AdditionalProperties != nil {
		g.fault(at, "a struct cannot have both declared fields and a pattern for others",
			"put the map into a field of its own")
	}
	return len(g.faults) == before
}

// property adds one field, with the default that CUE would give it.
func (g *generator) property(at site, sel cue.Selector, v cue.Value, parent *schemaProps) {
	before := len(g.faults)
	schema := g.schema(at, v)
	if schema == nil {
		if isTrue(parent.XPreserveUnknownFields) {
			g.faults = g.faults[:before] // what is not described is kept
		}
		return
	}
	name := sel.Unquoted()
	switch sel.ConstraintType() {
	case cue.OptionalConstraint:
		keep(parent, name, schema)
	case cue.RequiredConstraint:
		parent.Required = append(parent.Required, name)
	default:
		// CUE fills in nothing for field? and field!, so only here may the API server.
		switch value := g.absent(at, v, schema); value {
		case "":
			parent.Required = append(parent.Required, name)
		case "null": // the API server takes null for the absence of a default
		default:
			schema.Default = raw(value)
		}
	}
	if parent.Properties == nil {
		parent.Properties = map[string]schemaProps{}
	}
	parent.Properties[name] = *schema
}

// pattern adds the type of the values of a map.
func (g *generator) pattern(at site, key, value cue.Value, schema *schemaProps) {
	if !anyString(key) {
		g.fault(at, "a CRD cannot constrain the keys of a map",
			`write [string], and a rule in the struct for the keys, as in @crd(rule="self.all(k, k.matches('^[a-z]+$'))")`)
		return
	}
	if schema.AdditionalProperties != nil {
		g.fault(at, "a map has one type of values", "write one pattern")
		return
	}
	if values := g.schema(at, value); values != nil {
		schema.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: values}
	}
}

// anyString holds for the keys string and _.
func anyString(key cue.Value) bool {
	op, _ := key.Eval().Expr()
	return op == cue.NoOp && key.Kind() == cue.BottomKind && key.IncompleteKind()&cue.StringKind != 0
}
