package check

import (
	"regexp/syntax"
	"slices"
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
	first := ""
	if text, ok := textOf(schema, path, 0); ok && schema.Default == nil {
		first = text
		out = append(out, choice{label: "a text", made: true, literal: func(element int) any {
			if other, ok := textOf(schema, path, element); ok {
				return other
			}
			return first
		}})
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

// textOf returns a text of a schema. It is one that most fields of Kubernetes accept, unless the schema asks for
// a format.
func textOf(schema *apiextensionsv1.JSONSchemaProps, path string, element int) (string, bool) {
	name := strings.ToLower(strings.TrimSuffix(path[strings.LastIndex(path, ".")+1:], "[]"))
	candidates := []string{name + suffix(element), "a" + suffix(element)}
	for _, known := range formats {
		candidates = append(candidates, known[element%len(known)])
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

// formats are texts in the formats that fields most often have, each for the first and the second element.
var formats = [][]string{
	{"1Gi", "2Gi"}, {"100m", "200m"}, {"30s", "31s"}, {"1.2.3", "1.2.4"}, {"v1.2.3", "v1.2.4"}, {"a.example.com", "b.example.com"},
	{"https://a.example.com", "https://b.example.com"}, {"/", "/a"}, {"192.0.2.1", "192.0.2.2"}, {"192.0.2.0/24", "198.51.100.0/24"},
	{"0 0 * * *", "0 1 * * *"}, {"YQ==", "Yg=="}, {"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"}, {"1", "2"}, {"A", "B"},
	{strings.Repeat("a", 32), strings.Repeat("b", 32)},
}
