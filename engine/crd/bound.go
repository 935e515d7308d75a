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
	case cue.RegexMatchOp, cue.NotRegexMatchOp:
		if !g.compiles(at, text) {
			return false
		}
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
	integer := !fractions(schema)
	switch {
	case op == cue.NotEqualOp && !integer:
		not(schema, constantNumber(operand, n))
		return true
	case op == cue.NotEqualOp:
		return g.unlike(at, schema, op, operand)
	case integer && math.Abs(n) >= math.MaxInt64:
		// The API server holds no integer beyond, so there is nothing to refuse.
		schema.Format = "int64"
		return true
	case integer && !exact(operand, n):
		g.fault(at, fmt.Sprintf("a CRD holds bounds as float64, which cannot hold %v", operand), "write a bound below 2^53, or none")
		return false
	case integer:
		limit(schema, op, n, true)
	default:
		limit(schema, op, n, false)
		g.truncated(schema, op, operand, n)
	}
	return true
}

// limit sets the bound itself. The API server refuses every integer beside a bound like
// 1.5, so that of an integer is the next one within.
func limit(schema *schemaProps, op cue.Op, n float64, integer bool) {
	exclusive := op == cue.GreaterThanOp || op == cue.LessThanOp
	if integer && n != math.Trunc(n) {
		exclusive = false
	}
	switch op {
	case cue.GreaterThanEqualOp, cue.GreaterThanOp:
		if integer {
			n = math.Ceil(n)
		}
		schema.Minimum, schema.ExclusiveMinimum = &n, exclusive
	case cue.LessThanEqualOp, cue.LessThanOp:
		if integer {
			n = math.Floor(n)
		}
		schema.Maximum, schema.ExclusiveMaximum = &n, exclusive
	}
}

// truncated makes up for what the API server does with a bound like 1.5 on a number: it
// compares the integers among the numbers with 1.
func (g *generator) truncated(schema *schemaProps, op cue.Op, operand cue.Value, n float64) {
	whole := math.Trunc(n)
	if whole == n {
		return
	}
	upper := op == cue.LessThanEqualOp || op == cue.LessThanOp
	valid := upper == (whole < n)
	exclusive := op == cue.GreaterThanOp || op == cue.LessThanOp
	switch {
	case !valid && !exclusive: // >=1.5 would accept 1
		not(schema, between(whole))
	case valid && exclusive: // <1.5 would refuse 1
		schema.ExclusiveMinimum = schema.ExclusiveMinimum && upper
		schema.ExclusiveMaximum = schema.ExclusiveMaximum && !upper
		not(schema, constantNumber(operand, n))
	}
}

// fractions holds for a schema that accepts 1.5.
func fractions(schema *schemaProps) bool { return schema.Type == "number" }

// constantNumber is the schema of one number among numbers. In an enum, the API server
// would take 1.5 for the integer 1, and between bounds the integer 1 for 1.5.
func constantNumber(constant cue.Value, n float64) schemaProps {
	if n == math.Trunc(n) {
		return between(n)
	}
	text, _ := constant.MarshalJSON() // a number always has one
	return schemaProps{Enum: []apiextensionsv1.JSON{*raw(string(text))}}
}

func between(n float64) schemaProps { return schemaProps{Minimum: &n, Maximum: &n} }

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
