package syntax

import (
	"math"

	"cuelang.org/go/cue"
)

// An Interval is what the values of a field are between: a number itself, of a text the number
// of its characters, and of a list or a map how many elements it has.
type Interval struct {
	Low, High float64
	// Finite says that there is a fixed set of values, such as an enumeration.
	Finite bool
}

// An Amount is how large an expression may become, as far as the text tells.
type Amount struct {
	Interval
	// From is the field of the spec or of the configuration that the size rests on, such
	// as cr.spec.replicas; it is empty for what no user decides.
	From string
	// Kind is what that field is.
	Kind cue.Kind

	// known is false for what says nothing of its size, such as a type.
	known bool
	// bound is true for a constraint, such as <=9, which has a size as soon as it is of something.
	bound bool
	// many is true for lists and structs: what two of them have adds up.
	many bool
	// made is true for what a loop or a function makes, whose size is judged there.
	made bool
}

// constant is the amount of what is written in the package itself.
func constant(n float64) Amount { return Amount{Interval: Interval{Low: n, High: n}, known: true} }

// atMost is the amount of a constraint.
func atMost(n float64) Amount {
	return Amount{Interval: Interval{Low: math.Inf(-1), High: n}, known: true, bound: true}
}

// Beyond reports whether a user decides about an amount and may make it larger than a limit.
func (a Amount) Beyond(limit float64) bool {
	return a.From != "" && max(a.High, -a.Low) > limit
}

// both is the amount of what has to be as two expressions say.
func both(a, b Amount) Amount {
	switch {
	case !a.known:
		return b
	case !b.known:
		return a
	}
	if a.many && b.many {
		return add(a, b)
	}
	out := owner(a, b)
	out.Low, out.High = max(a.Low, b.Low), min(a.High, b.High)
	out.Finite, out.bound, out.many = a.Finite || b.Finite, a.bound && b.bound, a.many || b.many
	return out
}

// either is the amount of what is as one of two expressions says.
func either(a, b Amount) Amount {
	switch {
	case !a.known || a.bound && b.known && !b.bound:
		return b
	case !b.known || b.bound && !a.bound:
		return a
	}
	out := owner(a, b)
	out.Low, out.High, out.Finite = min(a.Low, b.Low), max(a.High, b.High), a.Finite && b.Finite
	return out
}

// add is the amount of a sum.
func add(a, b Amount) Amount {
	switch {
	case !a.known:
		return b
	case !b.known:
		return a
	}
	out := owner(a, b)
	out.Low, out.High = a.Low+b.Low, a.High+b.High
	return out
}

// subtract is the amount of a difference.
func subtract(a, b Amount) Amount {
	b.Low, b.High = -b.High, -b.Low
	return add(a, b)
}

// multiply is the amount of a product.
func multiply(a, b Amount) Amount {
	switch {
	case !a.known:
		return b
	case !b.known:
		return a
	}
	out := owner(a, b)
	out.Low, out.High = math.Inf(1), math.Inf(-1)
	for _, x := range []float64{a.Low, a.High} {
		for _, y := range []float64{b.Low, b.High} {
			out.Low, out.High = min(out.Low, product(x, y)), max(out.High, product(x, y))
		}
	}
	return out
}

// product is x*y, where nothing of something without limit is nothing.
func product(x, y float64) float64 {
	if x == 0 || y == 0 {
		return 0
	}
	return x * y
}

// power is the amount of a power, which is not negative.
func power(a, b Amount) Amount {
	if !a.known || !b.known {
		return Amount{}
	}
	out := owner(a, b)
	out.Low, out.High = 0, math.Pow(max(math.Abs(a.Low), math.Abs(a.High)), b.High)
	return out
}

// owner returns that of two amounts a user can make the larger one, for what is made of both.
func owner(a, b Amount) Amount {
	out, other := a, b
	if out.From == "" || other.From != "" && other.High > out.High {
		out, other = b, a
	}
	if out.From == "" {
		out.From, out.Kind = other.From, other.Kind
	}
	out.many, out.made = a.many || b.many, a.made || b.made
	out.bound, out.Finite = false, a.Finite && b.Finite
	return out
}

// count is an amount as a number of elements.
func (a Amount) count() Amount {
	a.Low, a.High = max(a.Low, 0), max(a.High, 0)
	return a
}
