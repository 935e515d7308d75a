package crd

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// structSchema returns the schema of a struct: an object with properties, or a map.
func (g *generator) structSchema(at location, v cue.Value, p parts, attrs attributes) *schemaProps {
	base := p.base(v)
	if p.alternatives > 1 {
		if schema, ok := g.choiceSchema(at, v, p, attrs); ok {
			return schema
		}
	}
	if p.alternatives > 1 || !p.acceptsDefaults(base) {
		g.fault(at, "a structural schema cannot express a choice between structs",
			`give each alternative a text of its own that tells it, as in {kind: "a", x: int} | {kind: "b", y: string}, or `+
				`write it as an optional field of one struct, with @crd(rule="has(self.a) != has(self.b)") in it if exactly one must be set`)
		return nil
	}
	schema := &schemaProps{Type: "object"}
	literals := structLiterals(v)
	inside := at.enclosedBy(literals)
	g.reportConditionalFields(inside, literals)
	var conditions []conditional
	if !g.isStatus {
		conditions, _ = conditionals(inside, literals)
		g.addHidden(inside, literals)
	}
	for _, c := range conditions {
		inside.conditions = append(inside.conditions, sourceRange{c.node.Pos(), c.node.End()})
	}
	inside.literals = literals
	g.addConditionals(inside, conditions)
	if attrs.preserve {
		schema.XPreserveUnknownFields = new(true)
	} else if isOpen(v, literals) {
		g.fault(at, "the struct is open (...), and the API server would drop all fields that are not declared",
			"declare them, write a map ([string]: string), or @crd(preserveUnknownFields) to keep whatever is there")
	}
	ok := g.addFields(inside, base, schema)
	if !g.addValidators(at, schema, p.calls) || !ok {
		return nil
	}
	before := len(g.faults)
	if g.addPending(at, schema); len(g.faults) > before {
		return nil
	}
	return schema
}

// reportConditionalFields adds a fault for fields that exist only under a condition on
// user input. Conditions on constants of the package are already evaluated.
func (g *generator) reportConditionalFields(at location, literals []*ast.StructLit) {
	for _, l := range literals {
		for _, e := range l.Elts {
			c, ok := e.(*ast.Comprehension)
			if !ok {
				continue
			}
			if _, becomesRules := conditionalFields(c, l); !becomesRules || g.isStatus {
				g.reportConditional(at, c)
			}
		}
	}
}

// reportConditional adds the fault for a comprehension that depends on the user's input.
func (g *generator) reportConditional(at location, c *ast.Comprehension) {
	for _, clause := range c.Clauses {
		d := dependencyOf(clause, at)
		if d.name == "" {
			continue
		}
		at := at
		at.pos = c.Pos()
		g.fault(at, fmt.Sprintf("whether these fields exist depends on %q", d.name),
			fmt.Sprintf("declare them outside of the condition as optional (cert?: string), with "+
				`@crd(rule="!self.%s || has(self.cert)") in the struct if they are then required`, d.name))
	}
}

// isOpen reports whether the author wrote that a struct accepts any field. Every struct that
// is not a definition accepts any field too, but not on purpose.
func isOpen(v cue.Value, literals []*ast.StructLit) bool {
	return v.Allows(cue.AnyString) && (len(literals) == 0 || hasEllipsis(literals))
}

// hasEllipsis reports whether an author wrote a "..." on purpose. A bare {...} beside
// another literal only says "a struct"; schemas/operator has one for every spec.
func hasEllipsis(literals []*ast.StructLit) bool {
	bare := func(l *ast.StructLit) bool { return len(l.Elts) == 1 }
	return slices.ContainsFunc(literals, func(l *ast.StructLit) bool {
		return slices.ContainsFunc(l.Elts, func(e ast.Decl) bool {
			_, open := e.(*ast.Ellipsis)
			return open && (len(literals) == 1 || !bare(l))
		})
	})
}

// addFields adds all fields of v to schema, and reports whether it could. It continues after
// a fault, to report all of them.
func (g *generator) addFields(at location, v cue.Value, schema *schemaProps) bool {
	fields, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		g.fault(at, errorMessage(err), "")
		return false
	}
	before := len(g.faults)
	for fields.Next() {
		sel, value := fields.Selector(), fields.Value()
		switch {
		case sel.LabelType() != cue.StringLabel:
			g.fault(at.positionedAt(value), fmt.Sprintf("the label %v is not a string", sel), "")
		case sel.ConstraintType() == cue.PatternConstraint:
			g.addMapValues(at.values().positionedAt(value), sel.Pattern(), value, schema)
		default:
			inside := at.field(sel.Unquoted()).positionedAt(value)
			inside.conditions, inside.literals = at.conditions, at.literals
			g.addProperty(inside, sel, value, schema)
		}
	}
	slices.Sort(schema.Required)
	if len(schema.Properties) > 0 && schema.AdditionalProperties != nil {
		g.fault(at, "a struct cannot have both declared fields and a pattern for others",
			"put the map into a field of its own")
	}
	return len(g.faults) == before
}

// addProperty adds one field, with the default that CUE would give it.
func (g *generator) addProperty(at location, sel cue.Selector, v cue.Value, parent *schemaProps) {
	before := len(g.faults)
	declared := v
	constraint := at.constraintOf(sel)
	if !g.isStatus && !ptr.Deref(parent.XPreserveUnknownFields, false) && !g.readAttributes(at, v, nil).preserve {
		v = g.independent(at, sel, v)
	}
	at.conditions, at.literals = nil, nil
	schema := g.schemaOf(at, declared, v)
	if schema == nil {
		if ptr.Deref(parent.XPreserveUnknownFields, false) {
			g.faults = g.faults[:before] // the parent preserves fields without a schema
		}
		return
	}
	name := sel.Unquoted()
	switch constraint {
	case cue.OptionalConstraint:
		forbidRemoval(parent, name, schema)
	case cue.RequiredConstraint:
		parent.Required = append(parent.Required, name)
	default:
		// CUE fills in nothing for field? and field!, so the API server must not either.
		switch value := g.defaultOf(at, v, schema); value {
		case "":
			parent.Required = append(parent.Required, name)
		case "null": // the API server takes null for the absence of a default
		default:
			schema.Default = rawJSON(value)
		}
	}
	if parent.Properties == nil {
		parent.Properties = map[string]schemaProps{}
	}
	parent.Properties[name] = *schema
}

// addMapValues adds the type of the values of a map.
func (g *generator) addMapValues(at location, key, value cue.Value, schema *schemaProps) {
	if !isAnyString(key) {
		g.fault(at, "a CRD cannot constrain the keys of a map",
			`write [string], and a rule in the struct for the keys, as in @crd(rule="self.all(k, k.matches('^[a-z]+$'))")`)
		return
	}
	if schema.AdditionalProperties != nil {
		g.fault(at, "all values of a map must have the same type", "write one pattern")
		return
	}
	if values := g.schema(at, value); values != nil {
		schema.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: values}
	}
}

// isAnyString reports whether a pattern matches every key, as string and _ do.
func isAnyString(key cue.Value) bool {
	op, _ := key.Eval().Expr()
	return op == cue.NoOp && key.Kind() == cue.BottomKind && key.IncompleteKind()&cue.StringKind != 0
}
