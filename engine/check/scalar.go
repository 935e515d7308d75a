package check

import (
	"encoding/base64"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// numbers returns the default or another number, the bounds, and what is next to a number that the package
// compares the field with.
func (s *splitter) numbers(schema *apiextensionsv1.JSONSchemaProps, path string) []choice {
	lowest, highest := limitsOf(schema)
	within := func(n int64) bool { return (lowest == nil || n >= *lowest) && (highest == nil || n <= *highest) }
	var out []choice
	add := func(made bool, n int64) {
		if c := number(n, within, made); within(n) && !slices.ContainsFunc(out, func(o choice) bool { return o.label == c.label }) {
			out = append(out, c)
		}
	}
	if schema.Default == nil {
		add(lowest == nil, 1)
	}
	if lowest != nil {
		add(false, *lowest)
	}
	if highest != nil {
		add(false, *highest)
	}
	if lowest == nil {
		add(true, 0)
	}
	for _, value := range s.compared[path] {
		if n, ok := value.(int64); ok {
			add(true, n-1)
			add(true, n)
			add(true, n+1)
		}
	}
	return withoutDefault(schema, out)
}

// number returns the choice of a number. Further elements have the next numbers, as far as they are allowed.
func number(n int64, within func(int64) bool, made bool) choice {
	c := constant(n)
	c.made = made
	c.literal = func(element int) any {
		if next := n + int64(element); within(next) {
			return next
		}
		if next := n - int64(element); within(next) {
			return next
		}
		return n
	}
	return c
}

// maxNumber bounds the numbers that are tried: a larger bound means that there is none.
const maxNumber = 100_000

// limitsOf returns the bounds of a number, or nil.
func limitsOf(schema *apiextensionsv1.JSONSchemaProps) (lowest, highest *int64) {
	if m := schema.Minimum; m != nil && *m > -maxNumber {
		n := int64(*m)
		if float64(n) < *m || schema.ExclusiveMinimum && float64(n) == *m {
			n++
		}
		lowest = &n
	}
	if m := schema.Maximum; m != nil && *m < maxNumber {
		n := int64(*m)
		if float64(n) > *m || schema.ExclusiveMaximum && float64(n) == *m {
			n--
		}
		highest = &n
	}
	return lowest, highest
}

// texts returns a text, if it has no default, and those that the package compares the field with.
func (s *splitter) texts(schema *apiextensionsv1.JSONSchemaProps, path string) []choice {
	var out []choice
	if text, ok := textsOf(schema, path); ok && schema.Default == nil {
		out = append(out, choice{label: "a text", made: true, literal: text})
	}
	for _, value := range s.compared[path] {
		if text, ok := value.(string); ok && allows(schema, text) {
			c := constant(text)
			c.made = true
			out = append(out, c)
		}
	}
	return withoutDefault(schema, out)
}

// textsOf returns texts that a schema accepts, one for each element as far as there are several, and false if there is none.
func textsOf(schema *apiextensionsv1.JSONSchemaProps, path string) (of func(element int) any, ok bool) {
	first, ok := textOf(schema, path, 0)
	return func(element int) any {
		if other, ok := textOf(schema, path, element); ok {
			return other
		}
		return first
	}, ok
}

// textOf returns a text of a schema. It is one that most fields of Kubernetes accept, unless the schema asks for
// a format.
func textOf(schema *apiextensionsv1.JSONSchemaProps, path string, element int) (string, bool) {
	name := strings.ToLower(strings.TrimSuffix(path[strings.LastIndex(path, ".")+1:], "[]"))
	candidates := []string{name + suffix(element), "a" + suffix(element)}
	for _, known := range formats {
		candidates = append(candidates, known(element))
	}
	if schema.Pattern != "" {
		if re, err := syntax.Parse(schema.Pattern, syntax.Perl); err == nil {
			out := &strings.Builder{}
			if matching(out, re, element) {
				candidates = append(candidates, out.String())
			}
		}
	}
	for _, c := range candidates {
		if allows(schema, c) {
			return c, true
		}
	}
	return "", false
}

// formats are texts in the formats that fields most often have, another one for each element.
var formats = []func(element int) string{
	func(element int) string { return fmt.Sprintf("%dGi", element+1) },
	func(element int) string { return fmt.Sprintf("%d00m", element+1) },
	func(element int) string { return fmt.Sprintf("%ds", 30+element) },
	func(element int) string { return fmt.Sprintf("1.2.%d", 3+element) },
	func(element int) string { return fmt.Sprintf("v1.2.%d", 3+element) },
	func(element int) string { return letters(element) + ".example.com" },
	func(element int) string { return "https://" + letters(element) + ".example.com" },
	func(element int) string { return "/" + strings.Repeat(letters(element-1), min(element, 1)) },
	func(element int) string { return fmt.Sprintf("192.0.2.%d", 1+element%254) },
	func(element int) string {
		if element == 0 {
			return "192.0.2.0/24"
		}
		return fmt.Sprintf("198.51.%d.0/24", (99+element)%256)
	},
	func(element int) string { return fmt.Sprintf("0 %d * * *", element%24) },
	func(element int) string { return base64.StdEncoding.EncodeToString([]byte(letters(element))) },
	func(element int) string { return fmt.Sprintf("2026-01-%02dT00:00:00Z", 1+element%31) },
	func(element int) string { return strconv.Itoa(element + 1) },
	func(element int) string { return strings.ToUpper(letters(element)) },
	func(element int) string { return strings.Repeat(letters(element), 32)[:32] },
}

// letters returns a number as a, b, and so on to z, ba.
func letters(n int) string {
	out := string(rune('a' + max(n, 0)%26))
	if n >= 26 {
		return letters(n/26) + out
	}
	return out
}
