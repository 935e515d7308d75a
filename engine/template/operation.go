package template

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// An operation is what CUE does with arguments.
type operation struct {
	// arity is how many arguments it takes; less than 0 is any number.
	arity int
	// eval returns the result, or ErrFallback.
	eval func(args []any) (any, error)
	// prepare returns eval for arguments of which some are constant; nil needs none.
	prepare func(args []*Node) (func(args []any) (any, error), error)
}

// operators are those of the language, by how CUE writes them.
var operators = map[string]*operation{
	"interpolation": {arity: -1, eval: interpolate},
	"+":             {arity: 2, eval: add},
	"-":             numbers(integers(subtracted), decimals.Sub),
	"*":             {arity: 2, eval: multiply},
	"/":             {arity: 2, eval: func(args []any) (any, error) { return decimalOf(args, divide) }},
	"negate":        {arity: 1, eval: negate},
	"bytes":         unary(func(s string) any { return []byte(s) }), // what is written as an interpolation in single quotes
	"number":        {arity: 1, eval: rendered},
	"index":         {arity: 2, eval: index},
	"div":           integers(euclideanQuotient),
	"mod":           integers(euclideanRemainder),
	"quo":           integers(quotient),
	"rem":           integers(remainder),
	"==":            compared(func(c int) bool { return c == 0 }),
	"!=":            compared(func(c int) bool { return c != 0 }),
	"<":             ordered(func(c int) bool { return c < 0 }),
	"<=":            ordered(func(c int) bool { return c <= 0 }),
	">":             ordered(func(c int) bool { return c > 0 }),
	">=":            ordered(func(c int) bool { return c >= 0 }),
	"!":             unary(func(b bool) any { return !b }),
	"&&":            {arity: -1, eval: conjunction},
	"||":            {arity: -1, eval: disjunction},
	"=~":            {arity: 2, prepare: matches(true)},
	"!~":            {arity: 2, prepare: matches(false)},
	"len":           {arity: 1, eval: length},
}

// interpolate joins texts and what CUE writes for other scalars.
func interpolate(args []any) (any, error) {
	size := 0
	for _, arg := range args {
		s, _ := arg.(string)
		size += len(s)
	}
	var b strings.Builder
	b.Grow(size + 20) // the longest number
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			b.WriteString(v)
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
		case bool:
			b.WriteString(strconv.FormatBool(v))
		case Decimal:
			b.WriteString(v.String())
		default:
			return nil, ErrFallback
		}
	}
	return b.String(), nil
}

// add adds numbers, and joins texts.
func add(args []any) (any, error) {
	if a, ok := args[0].(string); ok {
		b, ok := args[1].(string)
		if !ok {
			return nil, ErrFallback
		}
		return a + b, nil
	}
	return sum.eval(args)
}

var (
	sum     = numbers(integers(added), decimals.Add)
	product = numbers(integers(multiplied), decimals.Mul)
)

// multiply multiplies numbers, and repeats a text.
func multiply(args []any) (any, error) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			n, isCount := count(args[1-i])
			if !isCount {
				return nil, ErrFallback
			}
			return repeat(s, n)
		}
	}
	return product.eval(args)
}

// negate is a number with the other sign.
func negate(args []any) (any, error) {
	switch v := args[0].(type) {
	case int64:
		if v != math.MinInt64 {
			return -v, nil
		}
	case Decimal:
		d := &apd.Decimal{}
		return d.Neg(v), nil
	}
	return nil, ErrFallback
}

// index returns an element of a list, or a field of a struct.
func index(args []any) (any, error) {
	switch of := args[0].(type) {
	case []any:
		if i, ok := count(args[1]); ok && i >= 0 && i < len(of) {
			return of[i], nil
		}
	case map[string]any:
		if name, ok := args[1].(string); ok {
			if v, ok := of[name]; ok {
				return v, nil
			}
		}
	}
	return nil, ErrFallback
}

// integers is an operation on two integers that may have no result within 64 bits.
func integers(of func(a, b int64) (int64, bool)) *operation {
	return &operation{arity: 2, eval: func(args []any) (any, error) {
		a, isInt := args[0].(int64)
		b, areInts := args[1].(int64)
		if !isInt || !areInts {
			return nil, ErrFallback
		}
		if out, ok := of(a, b); ok {
			return out, nil
		}
		return nil, ErrFallback
	}}
}

// The smallest integer of 64 bits is none of the results: CUE v0.17.1 cannot return it either.

func added(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0) && c != math.MinInt64
}

func subtracted(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0) && c != math.MinInt64
}

func multiplied(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if high != 0 || low > math.MaxInt64 {
		return 0, false
	}
	return a * b, true
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a) //nolint:gosec // the two's complement
	}
	return uint64(a)
}

func quotient(a, b int64) (int64, bool) {
	if b == 0 || a == math.MinInt64 {
		return 0, false
	}
	return a / b, true
}

func remainder(a, b int64) (int64, bool) {
	if b == 0 || a == math.MinInt64 {
		return 0, false
	}
	return a % b, true
}

// euclideanRemainder is never negative.
func euclideanRemainder(a, b int64) (int64, bool) {
	m, ok := remainder(a, b)
	switch {
	case !ok || b == math.MinInt64:
		return 0, false
	case m >= 0:
		return m, true
	case b < 0:
		return m - b, true
	}
	return m + b, true
}

func euclideanQuotient(a, b int64) (int64, bool) {
	m, ok := euclideanRemainder(a, b)
	if !ok {
		return 0, false
	}
	if d, ok := subtracted(a, m); ok {
		return d / b, true
	}
	return 0, false
}

// compared is an operation that asks whether two values are the same.
func compared(is func(int) bool) *operation {
	return &operation{arity: 2, eval: func(args []any) (any, error) {
		if a, ok := args[0].(bool); ok {
			if b, ok := args[1].(bool); ok {
				if a == b {
					return is(0), nil
				}
				return is(1), nil
			}
		}
		if args[0] == nil && args[1] == nil {
			return is(0), nil
		}
		c, err := order(args[0], args[1])
		return is(c), err
	}}
}

// ordered is an operation that asks which of two values comes first.
func ordered(is func(int) bool) *operation {
	return &operation{arity: 2, eval: func(args []any) (any, error) {
		c, err := order(args[0], args[1])
		return is(c), err
	}}
}

// order compares two numbers, or two texts byte by byte.
func order(a, b any) (int, error) {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b), nil
		}
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), nil
		}
		return 0, ErrFallback
	}
	left, isNumber := asDecimal(a)
	right, areNumbers := asDecimal(b)
	if !isNumber || !areNumbers {
		return 0, ErrFallback
	}
	return left.Cmp(right), nil
}

func conjunction(args []any) (any, error) { return untilFirst(args, false) }

func disjunction(args []any) (any, error) { return untilFirst(args, true) }

// untilFirst returns whether one of some booleans is as wanted, or the opposite of that. All
// of them have to be booleans: CUE evaluates the others as well.
func untilFirst(args []any, wanted bool) (any, error) {
	out := !wanted
	for _, arg := range args {
		b, ok := arg.(bool)
		if !ok {
			return nil, ErrFallback
		}
		if b == wanted {
			out = wanted
		}
	}
	return out, nil
}

// matches is a comparison with a regular expression. Only one that is a constant is compiled: whoever
// may write any would have this process remember them all.
func matches(wanted bool) func([]*Node) (func([]any) (any, error), error) {
	return func(args []*Node) (func([]any) (any, error), error) {
		pattern, err := constantPattern(args[1])
		if err != nil {
			return nil, err
		}
		return func(args []any) (any, error) {
			text, ok := args[0].(string)
			if !ok {
				return nil, ErrFallback
			}
			return pattern.MatchString(text) == wanted, nil
		}, nil
	}
}

// constantPattern compiles the regular expression that a node is.
func constantPattern(n *Node) (*regexp.Regexp, error) {
	text, ok := n.value.(string)
	if n.form != constant || !ok {
		return nil, errors.New("the regular expression depends on data")
	}
	return regexp.Compile(text)
}

func length(args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return int64(len(v)), nil
	case []byte:
		return int64(len(v)), nil
	case []any:
		return int64(len(v)), nil
	case map[string]any:
		return int64(len(v)), nil
	}
	return nil, ErrFallback
}
