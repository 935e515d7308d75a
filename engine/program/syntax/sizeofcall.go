package syntax

import (
	"math"

	"cuelang.org/go/cue/ast"
)

// A result is how large that is what a function makes of its arguments.
type result func(s *sizes, args []ast.Expr) Amount

// resultsOfFunctions returns the results of the functions of CUE's packages. What is not
// there is as large as the largest that it is given.
func resultsOfFunctions() map[string]result {
	return map[string]result{
		"len":                func(s *sizes, args []ast.Expr) Amount { return number(s.of(args[0]).count()) },
		"list.MaxItems":      constraint,
		"struct.MaxFields":   constraint,
		"strings.MaxRunes":   constraint,
		"list.MinItems":      unknown,
		"struct.MinFields":   unknown,
		"strings.MinRunes":   unknown,
		"list.Range":         rangeSize,
		"list.Repeat":        timesSize,
		"strings.Repeat":     timesSize,
		"list.Concat":        joinedSize,
		"list.FlattenN":      joinedSize,
		"strings.Join":       joinedSize,
		"list.Min":           func(s *sizes, args []ast.Expr) Amount { return s.extreme(args[0], lesser) },
		"list.Max":           func(s *sizes, args []ast.Expr) Amount { return s.extreme(args[0], either) },
		"list.Sum":           joinedSize,
		"list.Take":          shortened,
		"list.Slice":         shortened,
		"strings.SliceRunes": shortened,
		"div":                func(s *sizes, args []ast.Expr) Amount { return s.of(args[0]) },
		"quo":                func(s *sizes, args []ast.Expr) Amount { return s.of(args[0]) },
		"mod":                func(s *sizes, args []ast.Expr) Amount { return s.of(args[1]) },
		"rem":                func(s *sizes, args []ast.Expr) Amount { return s.of(args[1]) },
		"math.Pow":           func(s *sizes, args []ast.Expr) Amount { return power(s.of(args[0]), s.of(args[1])) },
		"math/bits.Lsh": func(s *sizes, args []ast.Expr) Amount {
			return multiply(s.of(args[0]), power(constant(2), s.of(args[1])))
		},
		"strconv.Atoi":         parsed,
		"strconv.ParseInt":     parsed,
		"strconv.ParseUint":    parsed,
		"strconv.ParseFloat":   parsed,
		"crypto/md5.Sum":       digest,
		"crypto/sha1.Sum":      digest,
		"crypto/sha256.Sum256": digest,
		"crypto/sha512.Sum512": digest,
	}
}

// passed are the functions that make of a list one of the same elements.
var passed = map[string]bool{
	"close": true, "and": true, "list.Sort": true, "list.SortStable": true, "list.SortStrings": true, "list.Reverse": true,
	"list.Take": true, "list.Slice": true, "list.Drop": true,
}

// arguments is how many arguments the entries of results look at.
func arguments(name string) int {
	switch name {
	case "list.Range", "list.Repeat", "strings.Repeat", "mod", "rem", "math.Pow", "math/bits.Lsh":
		return 2
	}
	return 1
}

// call returns how large what a function makes is.
func (s *sizes) call(e *ast.CallExpr) Amount {
	name := function(e.Fun)
	if of, ok := s.results[name]; ok && len(e.Args) >= arguments(name) {
		return of(s, e.Args)
	}
	var out Amount
	for _, arg := range e.Args {
		out = either(out, s.of(arg))
	}
	return out
}

// called returns what the result of a function stands for.
func (s *sizes) called(e *ast.CallExpr) []origin {
	name := function(e.Fun)
	var out []origin
	switch {
	case passed[name]:
		for _, arg := range e.Args {
			out = append(out, s.origins(arg)...)
		}
		if name != "list.Take" && name != "list.Slice" {
			return out
		}
	case name == "list.Concat", name == "list.FlattenN":
		out = s.elements(s.origins(e.Args[0]))
	}
	if len(out) > 0 {
		return out
	}
	a := s.of(e)
	if name == "list.Range" && len(e.Args) > 1 {
		a = either(s.of(e.Args[0]), s.of(e.Args[1])) // an element
		count := s.of(e)
		a.Low, a.High, a.known = min(a.Low, count.Low), max(a.High, count.High), true
	}
	a.made = true
	return []origin{{made: &a}}
}

func unknown(*sizes, []ast.Expr) Amount { return Amount{} }

func digest(*sizes, []ast.Expr) Amount { return constant(64) }

// number is an amount of elements as a number.
func number(a Amount) Amount {
	a.many, a.made = false, false
	return a
}

func constraint(s *sizes, args []ast.Expr) Amount {
	a := s.of(args[0])
	a.Low, a.bound = math.Inf(-1), true
	return a
}

// rangeSize is how many numbers list.Range makes.
func rangeSize(s *sizes, args []ast.Expr) Amount {
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

// timesSize is how large that is what is repeated.
func timesSize(s *sizes, args []ast.Expr) Amount {
	out := multiply(s.of(args[0]).count(), s.of(args[1]).count())
	out.made = true
	return out
}

// joinedSize is how large a list of lists, or of texts, is as one.
func joinedSize(s *sizes, args []ast.Expr) Amount {
	lists := s.origins(args[0])
	if len(lists) == 1 && lists[0].expr != nil {
		if l, ok := lists[0].expr.(*ast.ListLit); ok {
			return s.sumOf(l)
		}
	}
	out := multiply(s.together(lists).count(), s.together(s.elements(lists)))
	out.made = true
	return out
}

// sumOf is how many elements the lists in a list have.
func (s *sizes) sumOf(l *ast.ListLit) Amount {
	var out Amount
	for _, elt := range l.Elts {
		if c, ok := elt.(*ast.Comprehension); ok {
			out = add(out, multiply(s.loop(c), s.together(s.plain(c.Value)).count()))
			continue
		}
		out = add(out, s.of(elt).count())
	}
	return out
}

// extreme is one of the numbers in a list, or their sum.
func (s *sizes) extreme(list ast.Expr, of func(a, b Amount) Amount) Amount {
	var out Amount
	if l, ok := list.(*ast.ListLit); ok {
		for _, elt := range l.Elts {
			if _, ok := elt.(*ast.Comprehension); ok {
				return s.together(s.elements(s.origins(list)))
			}
			out = of(out, s.of(elt))
		}
		return out
	}
	return s.together(s.elements(s.origins(list)))
}

// lesser is the amount of the lesser one of two numbers.
func lesser(a, b Amount) Amount {
	out := both(a, b)
	if a.known && b.known {
		out.Low = min(a.Low, b.Low)
	}
	return out
}

// shortened is how large what is left of a list or a text is.
func shortened(s *sizes, args []ast.Expr) Amount {
	out := s.of(args[0])
	if len(args) > 1 {
		if end := s.of(args[len(args)-1]); end.known && end.High < out.High {
			out.High = end.High
		}
	}
	return out
}

// parsed is the number that a text may be.
func parsed(s *sizes, args []ast.Expr) Amount {
	a := s.of(args[0])
	a.High = math.Pow(10, a.High) // of as many digits
	a.Low, a.many = -a.High, false
	return a
}
