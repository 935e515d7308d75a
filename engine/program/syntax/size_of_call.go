package syntax

import (
	"math"
	"slices"

	"cuelang.org/go/cue/ast"
)

// call returns how large the result of a function is. The result of a function that is not
// known counts as large as its largest argument.
func (s *sizes) call(e *ast.CallExpr) Amount {
	if len(e.Args) == 0 {
		return Amount{}
	}
	first, last := s.of(e.Args[0]), s.of(e.Args[len(e.Args)-1])
	switch name := function(e.Fun); name {
	case "len":
		return number(first.count())
	case "list.MaxItems", "struct.MaxFields", "strings.MaxRunes":
		first.Low, first.bound = math.Inf(-1), true
		return first
	case "list.MinItems", "struct.MinFields", "strings.MinRunes":
		return Amount{}
	case "list.Range":
		return s.rangeSize(e.Args)
	case "list.Repeat", "strings.Repeat":
		out := multiply(first.count(), last.count())
		out.made = true
		return out
	case "list.Concat", "list.FlattenN", "list.Sum", "strings.Join":
		return s.joinedSize(e.Args[0])
	case "list.Min":
		return s.extreme(e.Args[0], lesser)
	case "list.Max":
		return s.extreme(e.Args[0], either)
	case "list.Take", "list.Slice", "strings.SliceRunes":
		if len(e.Args) > 1 && last.known && last.High < first.High {
			first.High = last.High
		}
		return first
	case "div", "quo":
		return first
	case "mod", "rem":
		return last
	case "math.Pow":
		return power(first, last)
	case "math/bits.Lsh":
		return multiply(first, power(constant(2), last))
	case "strconv.Atoi", "strconv.ParseInt", "strconv.ParseUint", "strconv.ParseFloat":
		first.High = math.Pow(10, first.High) // a number of so many digits
		first.Low, first.many = -first.High, false
		return first
	case "crypto/md5.Sum", "crypto/sha1.Sum", "crypto/sha256.Sum256", "crypto/sha512.Sum512":
		return constant(64)
	}
	var out Amount
	for _, arg := range e.Args {
		out = either(out, s.of(arg))
	}
	return out
}

// number is an amount of elements as a number.
func number(a Amount) Amount {
	a.many, a.made = false, false
	return a
}

// rangeSize is how many numbers list.Range makes.
func (s *sizes) rangeSize(args []ast.Expr) Amount {
	if len(args) < 2 {
		return Amount{}
	}
	from, to := s.of(args[0]), s.of(args[1])
	step := constant(1)
	if len(args) > 2 {
		step = s.of(args[2])
	}
	out := subtract(to, from)
	if !step.known || step.Low <= 0 { // it may go down
		out = either(out, subtract(from, to))
	}
	smallest := min(math.Abs(step.Low), math.Abs(step.High))
	switch {
	case !step.known:
	case step.From != "" && (step.Low <= 0 && step.High >= 0 || smallest == 0):
		out.From, out.Kind, out.High = step.From, step.Kind, math.Inf(1) // it may be as small as it likes
	case smallest > 0:
		out.High /= smallest
	}
	out = out.count()
	out.many, out.made = true, true
	return out
}

// joinedSize is the size of the lists, or texts, in a list when they are joined.
func (s *sizes) joinedSize(list ast.Expr) Amount {
	if lists := s.origins(list); len(lists) == 1 {
		if l, ok := lists[0].expr.(*ast.ListLit); ok {
			return s.sumOf(l)
		}
	}
	out := multiply(s.of(list).count(), s.together(s.origins(list, Each)))
	out.made = true
	return out
}

// sumOf is how many elements the lists in a list have.
func (s *sizes) sumOf(l *ast.ListLit) Amount {
	var out Amount
	for _, elt := range l.Elts {
		if c, ok := elt.(*ast.Comprehension); ok {
			out = add(out, multiply(s.loop(c), s.together(s.origins(c.Value)).count()))
			continue
		}
		out = add(out, s.of(elt).count())
	}
	return out
}

// extreme is one of the numbers in a list, or their sum.
func (s *sizes) extreme(list ast.Expr, of func(a, b Amount) Amount) Amount {
	l, ok := list.(*ast.ListLit)
	isLoop := func(e ast.Expr) bool { _, is := e.(*ast.Comprehension); return is }
	if !ok || slices.ContainsFunc(l.Elts, isLoop) {
		return s.together(s.origins(list, Each))
	}
	var out Amount
	for _, elt := range l.Elts {
		out = of(out, s.of(elt))
	}
	return out
}

// lesser is the amount of the lesser one of two numbers.
func lesser(a, b Amount) Amount {
	out := both(a, b)
	if a.known && b.known {
		out.Low = min(a.Low, b.Low)
	}
	return out
}
