package syntax

import (
	"math"
	"slices"

	"cuelang.org/go/cue"
)

// An Interval bounds the values of a field: of a number its value, of a text how many
// characters it has, of a list or a map how many elements it has.
type Interval struct {
	Low, High float64
	// Finite is true for a fixed set of values, such as an enumeration.
	Finite bool
}

// An Amount is how large an expression may become, as far as the text shows.
type Amount struct {
	Interval
	// From is the field of the spec or of the configuration that the size depends on, such
	// as cr.spec.replicas; it is empty if no user decides the size.
	From string
	// Kind is the kind of that field.
	Kind cue.Kind

	// known is false if nothing is known of the size, as of a type.
	known bool
	// bound is true for a constraint such as <=9, which limits the size of something else.
	bound bool
	// many is true for lists and structs: when two are unified, their sizes add up.
	many bool
	// made is true for the result of a loop or a function: its size is judged there.
	made bool
}

// constant is the amount of a value in the text of the package.
func constant(n float64) Amount { return Amount{Interval: Interval{Low: n, High: n}, known: true} }

// atMost is the amount of a constraint.
func atMost(n float64) Amount {
	return Amount{Interval: Interval{Low: math.Inf(-1), High: n}, known: true, bound: true}
}

// MayExceed reports whether a user decides about an amount and may make it larger than a limit.
func (a Amount) MayExceed(limit float64) bool {
	return a.From != "" && max(a.High, -a.Low) > limit
}

// both is the amount of a unification.
func both(a, b Amount) Amount {
	if a.many && b.many {
		return add(a, b)
	}
	return combined(a, b, func(out *Amount) {
		out.Low, out.High = max(a.Low, b.Low), min(a.High, b.High)
		out.Finite, out.bound = a.Finite || b.Finite, a.bound && b.bound
	})
}

// either is the amount of a disjunction.
func either(a, b Amount) Amount {
	switch {
	case a.bound && b.known && !b.bound:
		return b
	case b.bound && a.known && !a.bound:
		return a
	}
	return combined(a, b, func(out *Amount) { out.Low, out.High = min(a.Low, b.Low), max(a.High, b.High) })
}

// add is the amount of a sum.
func add(a, b Amount) Amount {
	return combined(a, b, func(out *Amount) { out.Low, out.High = a.Low+b.Low, a.High+b.High })
}

// subtract is the amount of a difference.
func subtract(a, b Amount) Amount {
	b.Low, b.High = -b.High, -b.Low
	return add(a, b)
}

// multiply is the amount of a product.
func multiply(a, b Amount) Amount {
	return combined(a, b, func(out *Amount) {
		of := []float64{product(a.Low, b.Low), product(a.Low, b.High), product(a.High, b.Low), product(a.High, b.High)}
		out.Low, out.High = slices.Min(of), slices.Max(of)
	})
}

// product is x*y, and 0 for 0 times infinity.
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
	return combined(a, b, func(out *Amount) {
		out.Low, out.High = 0, math.Pow(max(math.Abs(a.Low), math.Abs(a.High)), b.High)
	})
}

// combined returns an amount made of two, or the one of them that is known. It names the
// user's field that can make it larger.
func combined(a, b Amount, combine func(out *Amount)) Amount {
	switch {
	case !a.known:
		return b
	case !b.known:
		return a
	}
	out, other := a, b
	if out.From == "" || other.From != "" && other.High > out.High {
		out, other = b, a
	}
	if out.From == "" {
		out.From, out.Kind = other.From, other.Kind
	}
	out.many, out.made = a.many || b.many, a.made || b.made
	out.bound, out.Finite = false, a.Finite && b.Finite
	combine(&out)
	return out
}

// count is an amount as a number of elements.
func (a Amount) count() Amount {
	a.Low, a.High = max(a.Low, 0), max(a.High, 0)
	return a
}
