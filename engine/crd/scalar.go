package crd

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// scalarTypes are the types of the kinds that a schema has a type for.
var scalarTypes = map[cue.Kind]string{
	cue.BoolKind: "boolean", cue.IntKind: "integer", cue.FloatKind: "number",
	cue.NumberKind: "number", cue.StringKind: "string",
}

// scalarSchema returns the schema of a value that is neither a struct nor a list. Evaluation
// has brought it into the form
//
//	arm | arm | …      arm = constant, or a conjunction of type, bounds and validators
func (g *generator) scalarSchema(at location, v cue.Value) *schemaProps {
	schema := &schemaProps{}
	kind := v.IncompleteKind() &^ cue.NullKind
	arms := operandsOf(cue.OrOp, v.Eval())
	switch {
	case scalarTypes[kind] != "":
		schema.Type = scalarTypes[kind]
	case kind == cue.BytesKind:
		schema.Type = "string"
		addFormat(schema, "byte")
	case kind == cue.IntKind|cue.StringKind, kind == cue.NumberKind|cue.StringKind:
		// A quantity (number | =~…) is one too, as in all CRDs: a fraction is then
		// written as a string.
		schema.XIntOrString = true
	default:
		g.fault(at, "a value has exactly one type in a CRD, and this may be "+kindNames(kind),
			"write one type; int | string is the only union that a CRD has")
		return nil
	}
	if schema.XIntOrString && !slices.ContainsFunc(arms, isNotConstant) {
		if !g.addEnum(at, schema, arms) {
			return nil
		}
		return schema
	}
	for _, k := range []cue.Kind{cue.BoolKind, cue.NumberKind, cue.StringKind, cue.BytesKind} {
		group := slices.DeleteFunc(slices.Clone(arms), func(a cue.Value) bool { return a.IncompleteKind()&(k|cue.NullKind) == 0 })
		if slices.ContainsFunc(group, isKind(k)) && !g.addDisjuncts(at, schema, group) {
			return nil
		}
	}
	return schema
}

// addDisjuncts adds the alternatives of one type.
func (g *generator) addDisjuncts(at location, schema *schemaProps, arms []cue.Value) bool {
	nullable := slices.ContainsFunc(arms, func(a cue.Value) bool { return a.IncompleteKind() == cue.NullKind })
	var constants, others []cue.Value
	for _, a := range arms {
		switch {
		case a.IncompleteKind() == cue.NullKind:
		case isNotConstant(a):
			others = append(others, a)
		default:
			constants = append(constants, a)
		}
	}
	switch {
	case len(others) == 0 && (schema.XIntOrString || nullable):
		return g.addStringEnum(at, schema, constants)
	case len(others) == 0 && !acceptsFractions(schema):
		return g.addEnum(at, schema, constants)
	case len(others) == 1 && len(constants) == 0:
		return g.addConjuncts(at, schema, others[0])
	case schema.XIntOrString:
		g.fault(at, "int | string cannot have further alternatives", "write only one of the two, or =~ with alternatives (^(auto|[0-9]+%)$)")
		return false
	}
	var anyOf []apiextensionsv1.JSONSchemaProps
	if acceptsFractions(schema) {
		for _, c := range sortedByPosition(constants) {
			n, _ := c.Float64()
			anyOf = append(anyOf, constantNumber(c, n))
		}
	} else if len(constants) > 0 {
		arm := schemaProps{}
		if !g.addEnum(at, &arm, constants) {
			return false
		}
		anyOf = append(anyOf, arm)
	}
	for _, o := range others {
		arm := schemaProps{Type: schema.Type}
		if !g.addConjuncts(at, &arm, o) {
			return false
		}
		arm.Type = "" // addConjuncts needed it; a structural schema has the type once, outside of anyOf
		anyOf = append(anyOf, arm)
	}
	schema.AnyOf = append(schema.AnyOf, anyOf...)
	return true
}

// addEnum lists constants in the order in which they were written: small, medium, large.
func (g *generator) addEnum(at location, schema *schemaProps, constants []cue.Value) bool {
	for _, c := range sortedByPosition(constants) {
		text, err := c.MarshalJSON()
		if err != nil {
			g.fault(at, errorMessage(err), "")
			return false
		}
		schema.Enum = append(schema.Enum, *rawJSON(string(text)))
	}
	return true
}

// addStringEnum writes constants as a pattern. A pattern does not apply to values that are not
// strings; an enum would exclude numbers, and the API server never accepts null for an enum.
func (g *generator) addStringEnum(at location, schema *schemaProps, constants []cue.Value) bool {
	var words []string
	for _, c := range sortedByPosition(constants) {
		word, err := c.String()
		if err != nil {
			g.fault(at, "next to null or string, a CRD cannot list numbers", "write bounds, or use strings only")
			return false
		}
		words = append(words, regexp.QuoteMeta(word))
	}
	schema.Pattern = "^(" + strings.Join(words, "|") + ")$"
	return true
}

// sortedByPosition sorts constants by position, if all are in one file: evaluation puts
// defaults first.
func sortedByPosition(constants []cue.Value) []cue.Value {
	for _, c := range constants {
		if !c.Pos().IsValid() || c.Pos().Filename() != constants[0].Pos().Filename() {
			return constants
		}
	}
	sorted := slices.Clone(constants)
	slices.SortStableFunc(sorted, func(a, b cue.Value) int { return cmp.Compare(a.Pos().Offset(), b.Pos().Offset()) })
	return sorted
}

// addConjuncts adds the conjuncts of one arm.
func (g *generator) addConjuncts(at location, schema *schemaProps, arm cue.Value) bool {
	if arm.IncompleteKind() == cue.FloatKind {
		g.fault(at, "float does not accept 5, and JSON does not distinguish 5 from 5.0", "write number")
		return false
	}
	ok := true
	for _, c := range operandsOf(cue.AndOp, arm) {
		switch op, args := c.Expr(); op {
		case cue.NoOp:
		case cue.CallOp:
			ok = g.addValidator(at, schema, validatorCall{callName(args[0]), args[1:], c}) && ok
		default:
			ok = g.addBound(at, schema, op, args) && ok
		}
	}
	setIntegerFormat(schema)
	return ok
}

func isKind(k cue.Kind) func(cue.Value) bool {
	return func(a cue.Value) bool { return a.IncompleteKind()&k != 0 }
}

// isNotConstant reports whether an arm has more than one value.
func isNotConstant(arm cue.Value) bool { return arm.Kind() == cue.BottomKind }

// operandsOf returns the operands of an evaluated conjunction or disjunction, however nested. Expr
// leaves out a default that is an instance of the only other arm.
func operandsOf(op cue.Op, v cue.Value) []cue.Value {
	is, args := v.Expr()
	if is != op && (is != cue.NoOp || len(args) != 1 || args[0] == v) {
		return []cue.Value{v}
	}
	var all []cue.Value
	for _, a := range args {
		all = append(all, operandsOf(op, a)...)
	}
	return all
}

func kindNames(kind cue.Kind) string {
	return strings.NewReplacer("(", "", ")", "", "|", " or ").Replace(kind.String())
}
