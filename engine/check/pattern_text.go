package check

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// allows reports whether a schema accepts a text.
func allows(schema *apiextensionsv1.JSONSchemaProps, text string) bool {
	length := int64(utf8.RuneCountInString(text))
	switch {
	case schema.MinLength != nil && length < *schema.MinLength, schema.MaxLength != nil && length > *schema.MaxLength:
		return false
	case schema.Not != nil && schema.Not.Type == "" && len(schema.Not.Enum) == 0 && schema.Not.Pattern != "" && matches(schema.Not.Pattern, text):
		return false
	}
	for i := range schema.AllOf {
		if !allows(&schema.AllOf[i], text) {
			return false
		}
	}
	return schema.Pattern == "" || matches(schema.Pattern, text)
}

func matches(pattern, text string) bool {
	re, err := regexp.Compile(pattern)
	return err == nil && re.MatchString(text)
}

// matching writes a short text that an expression matches, another one for each element where the expression
// leaves a choice. It reports false if there is none.
func matching(out *strings.Builder, re *syntax.Regexp, element int) bool {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			out.WriteRune(r)
		}
	case syntax.OpCharClass:
		return writeOneOf(out, re.Rune, element)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		out.WriteRune('a' + rune(element%26))
	case syntax.OpCapture, syntax.OpPlus:
		return matching(out, re.Sub[0], element)
	case syntax.OpRepeat:
		for range re.Min {
			if !matching(out, re.Sub[0], element) {
				return false
			}
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !matching(out, sub, element) {
				return false
			}
		}
	case syntax.OpAlternate:
		return matching(out, re.Sub[element%len(re.Sub)], element)
	case syntax.OpNoMatch, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return false
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpStar, syntax.OpQuest:
	}
	return true
}

// writeOneOf writes a character of some ranges, a lower-case letter or a digit if there is one.
func writeOneOf(out *strings.Builder, ranges []rune, element int) bool {
	for _, preferred := range [][2]rune{{'a', 'z'}, {'1', '9'}, {'A', 'Z'}, {0x20, 0x10ffff}} {
		for i := 0; i+1 < len(ranges); i += 2 {
			low, high := max(ranges[i], preferred[0]), min(ranges[i+1], preferred[1])
			if low <= high {
				out.WriteRune(low + rune(element%256)%(high-low+1))
				return true
			}
		}
	}
	return false
}
