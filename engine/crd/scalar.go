package crd

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// scalar is the schema of a value that is neither a struct nor a list. Evaluation
// has brought it into the form
//
//	arm | arm | …      arm = constant, or a conjunction of type, bounds and validators
func (g *generator) scalar(at site, v cue.Value) *schemaProps {
	schema := &schemaProps{}
	kind := v.IncompleteKind() &^ cue.NullKind
	arms := disjuncts(v.Eval())
	switch kind {
	case cue.BoolKind:
		schema.Type = "boolean"
	case cue.IntKind:
		schema.Type = "integer"
	case cue.NumberKind, cue.FloatKind:
		schema.Type = "number"
	case cue.StringKind:
		schema.Type = "string"
	case cue.BytesKind:
		schema.Type = "string"
		formatted(schema, "byte")
	case cue.IntKind | cue.StringKind, cue.NumberKind | cue.StringKind:
		// A quantity (number | =~…) is one too, as in all CRDs: a fraction is then
		// written as a string.
		schema.XIntOrString = true
	default:
		g.fault(at, "a value is of one type in a CRD, this may be "+kindNames(kind),
			"write one type; int | string is the only union that there is")
		return nil
	}
	if schema.XIntOrString && !slices.ContainsFunc(arms, isType) {
		if !g.enum(at, schema, arms) {
			return nil
		}
		return schema
	}
	for _, k := range []cue.Kind{cue.BoolKind, cue.NumberKind, cue.StringKind, cue.BytesKind} {
		group := slices.DeleteFunc(slices.Clone(arms), func(a cue.Value) bool { return a.IncompleteKind()&(k|cue.NullKind) == 0 })
		if slices.ContainsFunc(group, isKind(k)) && !g.arms(at, schema, group) {
			return nil
		}
	}
	return schema
}

// arms adds the alternatives of one type.
func (g *generator) arms(at site, schema *schemaProps, arms []cue.Value) bool {
	nullable := slices.ContainsFunc(arms, func(a cue.Value) bool { return a.IncompleteKind() == cue.NullKind })
	var constants, others []cue.Value
	for _, a := range arms {
		switch {
		case a.IncompleteKind() == cue.NullKind:
		case isType(a):
			others = append(others, a)
		default:
			constants = append(constants, a)
		}
	}
	switch {
	case len(others) == 0 && (schema.XIntOrString || nullable):
		return g.stringEnum(at, schema, constants)
	case len(others) == 0 && !fractions(schema):
		return g.enum(at, schema, constants)
	case len(others) == 1 && len(constants) == 0:
		return g.constrain(at, schema, others[0])
	case schema.XIntOrString:
		g.fault(at, "int | string cannot have further alternatives", "write one of both, or =~ with alternatives (^(auto|[0-9]+%)$)")
		return false
	}
	var anyOf []apiextensionsv1.JSONSchemaProps
	if fractions(schema) {
		for _, c := range inOrder(constants) {
			n, _ := c.Float64()
			anyOf = append(anyOf, constantNumber(c, n))
		}
	} else if len(constants) > 0 {
		arm := schemaProps{}
		if !g.enum(at, &arm, constants) {
			return false
		}
		anyOf = append(anyOf, arm)
	}
	for _, o := range others {
		arm := schemaProps{Type: schema.Type}
		if !g.constrain(at, &arm, o) {
			return false
		}
		arm.Type = "" // it helped to read the bounds; a structural schema has it once, outside
		anyOf = append(anyOf, arm)
	}
	schema.AnyOf = append(schema.AnyOf, anyOf...)
	return true
}

// enum lists constants in the order in which they were written: small, medium, large.
func (g *generator) enum(at site, schema *schemaProps, constants []cue.Value) bool {
	for _, c := range inOrder(constants) {
		text, err := c.MarshalJSON()
		if err != nil {
			g.fault(at, message(err), "")
			return false
		}
		schema.Enum = append(schema.Enum, *raw(string(text)))
	}
	return true
}

// stringEnum writes constants as a pattern. A pattern says nothing about what is no string;
// an enum would exclude numbers, and the API server finds null in no enum.
func (g *generator) stringEnum(at site, schema *schemaProps, constants []cue.Value) bool {
	var words []string
	for _, c := range inOrder(constants) {
		word, err := c.String()
		if err != nil {
			g.fault(at, "beside null or string, a CRD cannot list numbers", "write bounds, or use strings only")
			return false
		}
		words = append(words, regexp.QuoteMeta(word))
	}
	schema.Pattern = "^(" + strings.Join(words, "|") + ")$"
	return true
}

// inOrder sorts by position, if all are in one file: evaluation puts defaults first.
func inOrder(constants []cue.Value) []cue.Value {
	for _, c := range constants {
		if !c.Pos().IsValid() || c.Pos().Filename() != constants[0].Pos().Filename() {
			return constants
		}
	}
	sorted := slices.Clone(constants)
	slices.SortStableFunc(sorted, func(a, b cue.Value) int { return cmp.Compare(a.Pos().Offset(), b.Pos().Offset()) })
	return sorted
}

// constrain adds the conjuncts of one arm.
func (g *generator) constrain(at site, schema *schemaProps, arm cue.Value) bool {
	if arm.IncompleteKind() == cue.FloatKind {
		g.fault(at, "float refuses 5, and JSON does not tell 5 from 5.0", "write number")
		return false
	}
	ok := true
	for _, c := range conjuncts(arm) {
		switch op, args := c.Expr(); op {
		case cue.NoOp:
		case cue.CallOp:
			ok = g.validator(at, schema, call{callName(args[0]), args[1:], c}) && ok
		default:
			ok = g.bound(at, schema, op, args) && ok
		}
	}
	widthOf(schema)
	return ok
}

func isKind(k cue.Kind) func(cue.Value) bool {
	return func(a cue.Value) bool { return a.IncompleteKind()&k != 0 }
}

// isType holds for an arm that is more than one value.
func isType(arm cue.Value) bool { return arm.Kind() == cue.BottomKind }

// disjuncts flattens an evaluated disjunction. Expr leaves out a default that is an
// instance of another arm.
func disjuncts(v cue.Value) []cue.Value {
	op, args := v.Expr()
	switch {
	case op == cue.OrOp:
		var all []cue.Value
		for _, a := range args {
			all = append(all, disjuncts(a)...)
		}
		return all
	case op == cue.NoOp && len(args) == 1 && args[0] != v:
		return disjuncts(args[0])
	}
	return []cue.Value{v}
}

func conjuncts(v cue.Value) []cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp {
		return []cue.Value{v}
	}
	var all []cue.Value
	for _, a := range args {
		all = append(all, conjuncts(a)...)
	}
	return all
}

func kindNames(kind cue.Kind) string {
	return strings.NewReplacer("(", "", ")", "", "|", " or ").Replace(kind.String())
}
