package crd

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
)

// checkPattern reports whether a pattern compiles, and adds a fault if it does not. The API
// server compiles patterns like CUE, but CUE does so only when there is a value to match.
func (g *generator) checkPattern(at location, pattern string) bool {
	if _, err := regexp.Compile(pattern); err != nil {
		problem := err.Error()
		if wrong, ok := errors.AsType[*syntax.Error](err); ok {
			problem = wrong.Code.String()
		}
		g.fault(at, fmt.Sprintf("%q is not a regular expression: %s", pattern, problem), "use the syntax of RE2, in which \\( matches a bracket")
		return false
	}
	return true
}

// maxMatchLength returns the maximum length of a string that a pattern matches as a whole, and
// false if there is no maximum.
func maxMatchLength(pattern string) (int64, bool) {
	if pattern == "" {
		return 0, false
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, false // checkPattern has reported it
	}
	re = re.Simplify()
	if !anchored(re, syntax.OpBeginText, false) || !anchored(re, syntax.OpEndText, true) {
		return 0, false
	}
	n := maxLength(re)
	return n, n < math.MaxInt32
}

// anchored reports whether every match of an expression begins, or ends, with an anchor.
func anchored(re *syntax.Regexp, anchor syntax.Op, last bool) bool {
	switch re.Op {
	case anchor:
		return true
	case syntax.OpCapture:
		return anchored(re.Sub[0], anchor, last)
	case syntax.OpConcat:
		at := 0
		if last {
			at = len(re.Sub) - 1
		}
		return anchored(re.Sub[at], anchor, last)
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !anchored(sub, anchor, last) })
	}
	return false
}

// maxLength returns the maximum number of characters that an expression matches, or MaxInt32 if
// there is no maximum.
func maxLength(re *syntax.Regexp) int64 {
	switch re.Op {
	case syntax.OpLiteral:
		return int64(len(re.Rune))
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpQuest:
		return maxLength(re.Sub[0])
	case syntax.OpConcat:
		var sum int64
		for _, sub := range re.Sub {
			sum = min(sum+maxLength(sub), math.MaxInt32)
		}
		return sum
	case syntax.OpAlternate:
		var most int64
		for _, sub := range re.Sub {
			most = max(most, maxLength(sub))
		}
		return most
	case syntax.OpStar, syntax.OpPlus:
		if maxLength(re.Sub[0]) > 0 {
			return math.MaxInt32
		}
		return 0
	}
	return 0 // an anchor, or an expression that never matches
}
