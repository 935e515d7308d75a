package crd

import (
	"fmt"
	"math"

	"cuelang.org/go/cue"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// addBound adds one comparison, such as >=1 or =~"^a".
func (g *generator) addBound(at location, schema *schemaProps, op cue.Op, args []cue.Value) bool {
	if len(args) != 1 || args[0].Kind() == cue.BottomKind {
		g.fault(at, fmt.Sprintf("%v cannot be decided", op), "compare with a constant")
		return false
	}
	operand := args[0]
	switch operand.Kind() {
	case cue.NullKind:
		return true // the kinds of the value say that it is not null
	case cue.StringKind:
		return g.addStringBound(at, schema, op, operand)
	case cue.IntKind, cue.FloatKind:
		return g.addNumberBound(at, schema, op, operand)
	}
	return g.addNotEqual(at, schema, op, operand)
}

func (g *generator) addStringBound(at location, schema *schemaProps, op cue.Op, operand cue.Value) bool {
	text, err := operand.String()
	if err != nil {
		g.fault(at, errorMessage(err), "")
		return false
	}
	switch {
	case op == cue.NotEqualOp && text == "":
		schema.MinLength = larger(schema.MinLength, 1)
	case op == cue.NotEqualOp:
		return g.addNotEqual(at, schema, op, operand)
	case op != cue.RegexMatchOp && op != cue.NotRegexMatchOp:
		g.fault(at, fmt.Sprintf("a CRD cannot compare strings (%v%q)", op, text), "write a pattern, as in =~\"^[a-m]\"")
		return false
	case !g.checkPattern(at, text):
		return false
	case op == cue.RegexMatchOp:
		addPattern(schema, text)
	default:
		addNot(schema, schemaProps{Pattern: text})
	}
	return true
}

// addNotEqual adds !=operand.
func (g *generator) addNotEqual(at location, schema *schemaProps, op cue.Op, operand cue.Value) bool {
	text, err := operand.MarshalJSON()
	if err != nil || op != cue.NotEqualOp {
		g.fault(at, fmt.Sprintf("a CRD cannot say %v%v", op, operand), "")
		return false
	}
	addNot(schema, schemaProps{Enum: []apiextensionsv1.JSON{*rawJSON(string(text))}})
	return true
}

func (g *generator) addNumberBound(at location, schema *schemaProps, op cue.Op, operand cue.Value) bool {
	n, err := operand.Float64()
	if err != nil {
		g.fault(at, errorMessage(err), "")
		return false
	}
	integer := !acceptsFractions(schema)
	switch {
	case op == cue.NotEqualOp && !integer:
		addNot(schema, constantNumber(operand, n))
		return true
	case op == cue.NotEqualOp:
		return g.addNotEqual(at, schema, op, operand)
	case integer && math.Abs(n) >= math.MaxInt64:
		// The API server stores no integer beyond int64, so there is nothing to reject.
		schema.Format = "int64"
		return true
	case integer && !isExact(operand, n):
		g.fault(at, fmt.Sprintf("a CRD holds bounds as float64, which cannot hold %v", operand), "write a bound below 2^53, or none")
		return false
	}
	setBound(schema, op, n)
	if !integer {
		correctTruncatedBound(schema, op, operand, n)
	}
	return true
}

// setBound sets the minimum or maximum. The API server rejects every integer if the bound is
// a fraction like 1.5, so a bound of an integer is rounded to the next valid integer.
func setBound(schema *schemaProps, op cue.Op, n float64) {
	upper, exclusive := boundKind(op)
	if !acceptsFractions(schema) && n != math.Trunc(n) {
		round := math.Ceil
		if upper {
			round = math.Floor
		}
		n, exclusive = round(n), false
	}
	if upper {
		schema.Maximum, schema.ExclusiveMaximum = &n, exclusive
	} else {
		schema.Minimum, schema.ExclusiveMinimum = &n, exclusive
	}
}

// boundKind reports whether a bound is an upper one, and whether it excludes its operand.
func boundKind(op cue.Op) (upper, exclusive bool) {
	return op == cue.LessThanEqualOp || op == cue.LessThanOp, op == cue.GreaterThanOp || op == cue.LessThanOp
}

// correctTruncatedBound works around a behaviour of the API server: with a bound like 1.5 on
// a number, it truncates the bound to 1 before it compares an integer with it.
func correctTruncatedBound(schema *schemaProps, op cue.Op, operand cue.Value, n float64) {
	whole := math.Trunc(n)
	if whole == n {
		return
	}
	upper, exclusive := boundKind(op)
	valid := upper == (whole < n)
	switch {
	case !valid && !exclusive: // >=1.5 would accept 1
		addNot(schema, exactly(whole))
	case valid && exclusive: // <1.5 would refuse 1
		schema.ExclusiveMinimum = schema.ExclusiveMinimum && upper
		schema.ExclusiveMaximum = schema.ExclusiveMaximum && !upper
		addNot(schema, constantNumber(operand, n))
	}
}

// acceptsFractions reports whether a schema accepts numbers like 1.5.
func acceptsFractions(schema *schemaProps) bool { return schema.Type == "number" }

// constantNumber returns the schema of one constant in a field of type number. In an enum, the
// API server would take 1.5 for the integer 1, and between bounds the integer 1 for 1.5.
func constantNumber(constant cue.Value, n float64) schemaProps {
	if n == math.Trunc(n) {
		return exactly(n)
	}
	text, _ := constant.MarshalJSON() // a number always has one
	return schemaProps{Enum: []apiextensionsv1.JSON{*rawJSON(string(text))}}
}

func exactly(n float64) schemaProps { return schemaProps{Minimum: &n, Maximum: &n} }

// isExact reports whether n, a float64, is the same number as operand.
func isExact(operand cue.Value, n float64) bool {
	i, err := operand.Int64()
	return err != nil || int64(n) == i
}

// setIntegerFormat sets the format int32 for an integer that needs exactly 32 bits.
func setIntegerFormat(schema *schemaProps) {
	if schema.Type != "integer" || schema.Minimum == nil || schema.Maximum == nil {
		return
	}
	if *schema.Minimum >= math.MinInt32 && *schema.Maximum == math.MaxInt32 {
		schema.Format = "int32"
	}
}

// addPattern adds a pattern. A schema has only one, so further ones go into allOf.
func addPattern(schema *schemaProps, pattern string) {
	if schema.Pattern == "" {
		schema.Pattern = pattern
		return
	}
	schema.AllOf = append(schema.AllOf, schemaProps{Pattern: pattern})
}

// addNot adds a schema that must not match. A schema has only one "not", so further ones go
// into allOf.
func addNot(schema *schemaProps, of schemaProps) {
	if schema.Not == nil {
		schema.Not = &of
		return
	}
	schema.AllOf = append(schema.AllOf, schemaProps{Not: &of})
}

func larger(have *int64, n int64) *int64 { return new(max(n, ptr.Deref(have, n))) }

func smaller(have *int64, n int64) *int64 { return new(min(n, ptr.Deref(have, n))) }
