package check

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"operetta.dev/engine/program"
)

// A sample is a value of an input that nothing in the package names: any other one may be there on a cluster, too. A fault
// counts only if it shows with every candidate.
type sample struct {
	candidates []func(element int) any
	// at is the candidate that is in use: the first, until another one did better.
	at int
	// provided is true if the package provides for the absence of the value.
	provided bool
}

// value returns the value for the element of a number.
func (s *sample) value(element int) any {
	if s.at == s.absent() {
		return omitted{}
	}
	return s.candidates[s.at](element)
}

// choice returns the choice of the sample.
func (s *sample) choice(label string) choice {
	return choice{label: label, made: true, sample: s, literal: s.value}
}

// omitted is the value that leaves a field out.
type omitted struct{}

// absent is the candidate that leaves the field out.
func (s *sample) absent() int { return len(s.candidates) }

// words are texts of a package, some of which it may take as values, and expressions that it matches texts with.
type words struct{ texts, patterns []string }

// maxWords is how many words and patterns of a package are candidates.
const maxWords = 40

func wordsOf(p *program.Program) words {
	texts, patterns := p.Syntax().Examples().Words()
	return words{texts[:min(len(texts), maxWords)], patterns[:min(len(patterns), maxWords)]}
}

// textSample returns the sample of a text at a path that a schema accepts.
func textSample(schema *apiextensionsv1.JSONSchemaProps, path string, words words) *sample {
	out := &sample{}
	if text, ok := textsOf(schema, path); ok {
		out.add(text)
	}
	for _, pattern := range words.patterns {
		like := schema.DeepCopy()
		like.AllOf = append(like.AllOf, apiextensionsv1.JSONSchemaProps{Pattern: pattern})
		like.Pattern = cmp.Or(like.Pattern, pattern)
		if text, ok := textsOf(like, path); ok {
			out.add(text)
		}
	}
	for _, text := range slices.Concat(formats, []func(int) string{
		func(element int) string { return strconv.FormatBool(element%2 == 0) },
		func(int) string { return "{}" },
		func(int) string { return "[]" },
	}) {
		if allows(schema, text(0)) && allows(schema, text(1)) {
			out.add(func(element int) any { return text(element) })
		}
	}
	for _, word := range words.texts {
		if allows(schema, word) {
			out.add(func(int) any { return word })
		}
	}
	return out
}

// valueSample returns the sample of a value in JSON: also what is no text.
func valueSample(path string, words words) *sample {
	out := textSample(&apiextensionsv1.JSONSchemaProps{Type: "string"}, path, words)
	first := out.candidates[0]
	others := []func(element int) any{
		func(element int) any { return int64(1 + element) },
		func(element int) any { return element%2 == 0 },
		func(element int) any { return []any{first(element)} },
		func(element int) any { return map[string]any{"key": first(element)} },
	}
	out.candidates = slices.Concat(out.candidates[:1], others, out.candidates[1:])
	return out
}

// add adds a candidate, unless there is one with the same value.
func (s *sample) add(candidate func(element int) any) {
	value := fmt.Sprint(candidate(0))
	if !slices.ContainsFunc(s.candidates, func(c func(int) any) bool { return fmt.Sprint(c(0)) == value }) {
		s.candidates = append(s.candidates, candidate)
	}
}

// asJSON returns a value as its text in JSON, which is YAML, too.
func asJSON(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		return "{}" // unreachable: it is plain data
	}
	return string(text)
}

// asBase64 returns a text as a Secret has it.
func asBase64(value any) any {
	text, _ := value.(string)
	return base64.StdEncoding.EncodeToString([]byte(text))
}

// chained returns an encoding after another one; either may be nil.
func chained(first, then func(any) any) func(any) any {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(value any) any { return then(first(value)) }
}

// pathText returns a path as it is shown, such as inputs.nodes.objects[].spec.
func pathText(path []string) string {
	return strings.ReplaceAll(strings.Join(path, "."), "."+each, "[]")
}
