package template

import (
	"math"
	"math/big"
	"slices"

	cuemath "cuelang.org/go/pkg/math"
	"github.com/cockroachdb/apd/v3"
)

// A number that is no integer is an *apd.Decimal while it is calculated with, as CUE has it, and a
// float64 in what is rendered: "number" makes the one of the other. Integers are int64 all the time.

// Decimal is the value of a node that is a number with decimal places. It must not be changed.
type Decimal = *apd.Decimal

// MayBeDecimal reports whether the value of a node may be a Decimal.
func (n *Node) MayBeDecimal() bool {
	switch n.form {
	case constant:
		_, ok := n.value.(Decimal)
		return ok || slices.ContainsFunc(n.args, (*Node).MayBeDecimal)
	case list, object:
		return slices.ContainsFunc(n.args, (*Node).MayBeDecimal)
	case call:
		return makesDecimals[n.name] || keepsDecimals[n.name] && slices.ContainsFunc(n.args, (*Node).MayBeDecimal)
	case reference, marshal:
	}
	return false
}

// makesDecimals are the operations that make decimals of integers, and keepsDecimals those that may only make
// one of another.
var (
	makesDecimals = map[string]bool{"/": true, "list.Avg": true}
	keepsDecimals = map[string]bool{
		"+": true, "-": true, "*": true, "negate": true, "index": true, "math.Abs": true,
		"list.Max": true, "list.Min": true, "list.Sum": true, "list.Product": true,
	}
)

// precision is how many digits a decimal of CUE has.
const precision = 34

// decimals is the arithmetic of CUE: internal.BaseContext of cuelang.org/go.
var decimals = apd.BaseContext.WithPrecision(precision)

// asDecimal returns a number as a decimal.
func asDecimal(v any) (Decimal, bool) {
	switch v := v.(type) {
	case int64:
		return apd.New(v, 0), true
	case Decimal:
		return v, true
	}
	return nil, false
}

// numbers is an operation on two numbers: on integers if both are, and otherwise on decimals.
func numbers(integers *operation, of func(d, a, b *apd.Decimal) (apd.Condition, error)) *operation {
	return &operation{arity: 2, eval: func(args []any) (any, error) {
		_, isInt := args[0].(int64)
		if _, areInts := args[1].(int64); isInt && areInts {
			return integers.eval(args)
		}
		return decimalOf(args, of)
	}}
}

// decimalOf returns what an operation makes of two numbers.
func decimalOf(args []any, of func(d, a, b *apd.Decimal) (apd.Condition, error)) (any, error) {
	a, isNumber := asDecimal(args[0])
	b, areNumbers := asDecimal(args[1])
	if !isNumber || !areNumbers {
		return nil, ErrFallback
	}
	d := &apd.Decimal{}
	if c, err := of(d, a, b); err != nil || c.DivisionByZero() || d.Form != apd.Finite {
		return nil, ErrFallback
	}
	return d, nil
}

// divide is the quotient of two numbers. CUE removes its trailing zeros but for one decimal place.
func divide(d, a, b *apd.Decimal) (apd.Condition, error) {
	c, err := decimals.Quo(d, a, b)
	if err != nil {
		return c, err
	}
	places := d.Exponent
	d.Reduce(d)
	if places < 0 && d.Exponent >= 0 {
		d.Exponent--
		d.Coeff.Mul(&d.Coeff, apd.NewBigInt(10))
	}
	return c, nil
}

// rendered returns a number as an object has it: an integer if it is one.
func rendered(args []any) (any, error) {
	d, ok := args[0].(Decimal)
	if !ok {
		if _, ok := args[0].(int64); ok {
			return args[0], nil
		}
		return nil, ErrFallback
	}
	if d.IsZero() {
		return int64(0), nil
	}
	f, err := d.Float64()
	switch size := math.Abs(f); {
	case err != nil || size < 1e-300 || size > 1e300:
		return nil, ErrFallback // CUE takes some of them for too small or too large
	case f == math.Trunc(f) && size < 1<<53:
		return int64(f), nil
	}
	return f, nil
}

// aggregate is a function of a list of numbers.
func aggregate(of func([]*apd.Decimal) (*apd.Decimal, error)) *operation {
	return &operation{arity: 1, eval: func(args []any) (any, error) {
		elements, ok := args[0].([]any)
		if !ok {
			return nil, ErrFallback
		}
		all := make([]*apd.Decimal, len(elements))
		for i, e := range elements {
			if all[i], ok = asDecimal(e); !ok {
				return nil, ErrFallback
			}
		}
		return ofLibrary(of(all))
	}}
}

// rounded is a function that makes an integer of a number.
func rounded(of func(*apd.Decimal) (*big.Int, error)) *operation {
	return &operation{arity: 1, eval: func(args []any) (any, error) {
		d, ok := asDecimal(args[0])
		if !ok {
			return nil, ErrFallback
		}
		i, err := of(d)
		if err != nil || !i.IsInt64() || i.Int64() == math.MinInt64 {
			return nil, ErrFallback
		}
		return i.Int64(), nil
	}}
}

// absolute is a number without its sign.
func absolute(args []any) (any, error) {
	d, ok := asDecimal(args[0])
	if !ok {
		return nil, ErrFallback
	}
	return ofLibrary(cuemath.Abs(d))
}

// ofLibrary returns what CUE makes of a number that a function of its library has returned: an integer
// if it is one, whatever it was made of.
func ofLibrary(d *apd.Decimal, err error) (any, error) {
	if err != nil || d == nil || d.Form != apd.Finite {
		return nil, ErrFallback
	}
	whole := &apd.Decimal{}
	if c, _ := decimals.RoundToIntegralExact(whole, d); c.Inexact() {
		return d, nil
	}
	i, err := whole.Int64()
	if err != nil || i == math.MinInt64 {
		return nil, ErrFallback
	}
	return i, nil
}
