package crd

import (
	"fmt"
	"math"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// bound adds one comparison, such as >=1 or =~"^a".
func (g *generator) bound(at site, schema *schemaProps, op cue.Op, args []cue.Value) bool {
	if len(args) != 1 || args[0].Kind() == cue.BottomKind {
		g.fault(at, fmt.Sprintf("%v cannot be decided", op), "compare with a constant")
		return false
	}
	operand := args[0]
	switch operand.Kind() {
	case cue.NullKind:
		return true // the kinds of the value say that it is not null
	case cue.StringKind:
		return g.stringBound(at, schema, op, operand)
	case cue.IntKind, cue.FloatKind:
		return g.numberBound(at, schema, op, operand)
	}
	return g.unlike(at, schema, op, operand)
}

func (g *generator) stringBound(at site, schema *schemaProps, op cue.Op, operand cue.Value) bool {
	text, err := operand.String()
	if err != nil {
		g.fault(at, message(err), "")
		return false
	}
	switch op {
	case cue.RegexMatchOp:
		matches(schema, text)
	case cue.NotRegexMatchOp:
		not(schema, schemaProps{Pattern: text})
	case cue.NotEqualOp:
		if text == "" {
			schema.MinLength = highest(schema.MinLength, 1)
			return true
		}
		return g.unlike(at, schema, op, operand)
	default:
		g.fault(at, fmt.Sprintf("a CRD cannot compare strings (%v%q)", op, text), "write a pattern, as in =~\"^[a-m]\"")
		return false
	}
	return true
}

// unlike adds !=operand.
func (g *generator) unlike(at site, schema *schemaProps, op cue.Op, operand cue.Value) bool {
	text, err := operand.MarshalJSON()
	if err != nil || op != cue.NotEqualOp {
		g.fault(at, fmt.Sprintf("a CRD cannot say %v%v", op, operand), "")
		return false
	}
	not(schema, schemaProps{Enum: []apiextensionsv1.JSON{*raw(string(text))}})
	return true
}

func (g *generator) numberBound(at site, schema *schemaProps, op cue.Op, operand cue.Value) bool {
	n, err := operand.Float64()
	if err != nil {
		g.fault(at, message(err), "")
		return false
	}
	integer := schema.Type == "integer" || schema.XIntOrString
	switch {
	case op == cue.NotEqualOp:
		return g.unlike(at, schema, op, operand)
	case integer && math.Abs(n) >= math.MaxInt64:
		// The API server holds no integer beyond, so there is nothing to refuse.
		schema.Format = "int64"
		return true
	case integer && !exact(operand, n):
		g.fault(at, fmt.Sprintf("a CRD holds bounds as float64, which cannot hold %v", operand), "write a bound below 2^53, or none")
		return false
	}
	switch op {
	case cue.GreaterThanEqualOp, cue.GreaterThanOp:
		schema.Minimum, schema.ExclusiveMinimum = &n, op == cue.GreaterThanOp
	case cue.LessThanEqualOp, cue.LessThanOp:
		schema.Maximum, schema.ExclusiveMaximum = &n, op == cue.LessThanOp
	}
	return true
}

// exact holds if n, a float64, is the same number as operand.
func exact(operand cue.Value, n float64) bool {
	i, err := operand.Int64()
	return err != nil || int64(n) == i
}

// widthOf gives an integer that fits into 32 bits and no fewer its format: int32.
func widthOf(schema *schemaProps) {
	if schema.Type != "integer" || schema.Minimum == nil || schema.Maximum == nil {
		return
	}
	if *schema.Minimum >= math.MinInt32 && *schema.Maximum == math.MaxInt32 {
		schema.Format = "int32"
	}
}

// matches adds a pattern; a schema has one, so further ones go into allOf.
func matches(schema *schemaProps, pattern string) {
	if schema.Pattern == "" {
		schema.Pattern = pattern
		return
	}
	schema.AllOf = append(schema.AllOf, schemaProps{Pattern: pattern})
}

// not adds what must not hold; a schema has one, so further ones go into allOf.
func not(schema *schemaProps, of schemaProps) {
	if schema.Not == nil {
		schema.Not = &of
		return
	}
	schema.AllOf = append(schema.AllOf, schemaProps{Not: &of})
}

func highest(have *int64, n int64) *int64 {
	if have != nil && *have > n {
		return have
	}
	return &n
}

func lowest(have *int64, n int64) *int64 {
	if have != nil && *have < n {
		return have
	}
	return &n
}
