package crd

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
)

// compiles reports a pattern that an API server refuses. It compiles patterns as CUE does, but
// CUE does so only when there is a value to match.
func (g *generator) compiles(at site, pattern string) bool {
	if _, err := regexp.Compile(pattern); err != nil {
		problem := err.Error()
		if wrong, ok := errors.AsType[*syntax.Error](err); ok {
			problem = wrong.Code.String()
		}
		g.fault(at, fmt.Sprintf("%q is no regular expression: %s", pattern, problem), "write one in the syntax of RE2, in which \\( is a bracket")
		return false
	}
	return true
}

// longestMatch returns how many characters a text has at most that a pattern matches as a
// whole, and false if there is no such limit.
func longestMatch(pattern string) (int64, bool) {
	if pattern == "" {
		return 0, false
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, false // it is reported where it is written
	}
	re = re.Simplify()
	if !anchored(re, syntax.OpBeginText, false) || !anchored(re, syntax.OpEndText, true) {
		return 0, false
	}
	n := longest(re)
	return n, n < math.MaxInt32
}

// anchored reports whether all that an expression matches begins, or ends, with an anchor.
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
		for _, sub := range re.Sub {
			if !anchored(sub, anchor, last) {
				return false
			}
		}
		return true
	}
	return false
}

// longest returns how many characters an expression takes at most, or a number beyond all
// limits.
func longest(re *syntax.Regexp) int64 {
	switch re.Op {
	case syntax.OpLiteral:
		return int64(len(re.Rune))
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpQuest:
		return longest(re.Sub[0])
	case syntax.OpConcat:
		var sum int64
		for _, sub := range re.Sub {
			sum = min(sum+longest(sub), math.MaxInt32)
		}
		return sum
	case syntax.OpAlternate:
		var most int64
		for _, sub := range re.Sub {
			most = max(most, longest(sub))
		}
		return most
	case syntax.OpStar, syntax.OpPlus:
		if longest(re.Sub[0]) > 0 {
			return math.MaxInt32
		}
		return 0
	}
	return 0 // an anchor, or what never matches
}
