package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A branch is a field of the spec, or of the object of an input, with several choices.
type branch struct {
	path    string
	choices []choice
	// usual is the choice to take if any does.
	usual int
	// rare are choices that are tried once, and in no pairs. A selection has their numbers behind those of choices.
	rare []choice
}

// A choice is one way to write a field. Exactly one of the parts after made is set, or none if it is left out.
type choice struct {
	// label says what is chosen, as in "2 elements".
	label string
	// made is true if a value is made up, so that a cluster may refuse it although it is not wrong.
	made bool
	// coincides is true if elements of a list or map may have equal values where other resources have different
	// ones.
	coincides bool
	// listed is true if the value is one of those that the schema lists, of an enumeration or true and false.
	listed bool
	// odd is true if the key of a map is one that most names cannot have.
	odd bool

	// literal returns the value, for the element of a number of the lists around it.
	literal func(element int) any
	// fields are those of a struct.
	fields []field
	// elements are those of a list, and entries those of a map with their keys.
	elements []*node
	entries  []entry

	// sample makes the value of literal, if another one may do as well.
	sample *sample
}

// leftOut is the choice to leave a field out.
var leftOut = choice{label: "left out"}

func (c choice) isLeftOut() bool {
	return c.literal == nil && c.fields == nil && c.elements == nil && c.entries == nil
}

// A node is a place in the spec. It has a branch if there is more than one choice.
type node struct {
	branch  *branch
	choices []choice
	// dropsEmpty is true if the field is left out when nothing is in it.
	dropsEmpty bool
	// encode turns the value into what stands in the object, such as its text in JSON. It may be nil.
	encode func(value any) any
}

type field struct {
	name string
	node *node
}

type entry struct {
	key  string
	node *node
}

// maxDepth bounds how deep a schema is followed.
const maxDepth = 12

// maxElements is how many elements a list is given at most, unless the schema or the package names another number.
const maxElements = 2

// maxCounted is how many elements a list is given at most where they name one. Each makes an object in many packages.
const maxCounted = 20

// A splitter finds the branches of a schema.
type splitter struct {
	branches []*branch
	// compared are the literals that the package compares a field with, by its path.
	compared map[string][]any
	// counted are the numbers of elements at which the package does something else with a list or map, by its path.
	counted map[string][]int
	// samples are those of texts in inputs, by the path of the field.
	samples map[string]*sample
	// bound is how many cases there may be, and parts are what there is too much of for that.
	bound int
	parts []Truncation
	// rare are the rare choices of lists and maps, by the path of the field.
	rare map[string][]choice
}

// structure returns the node of a struct. It has one choice only, so that its fields are branches of their own.
func (s *splitter) structure(schema *apiextensionsv1.JSONSchemaProps, path string, depth int) []choice {
	out := choice{label: "written", fields: []field{}}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		below := schema.Properties[name]
		optional := !slices.Contains(schema.Required, name) || below.Default != nil
		if n := s.node(&below, path+"."+name, optional, depth+1); n != nil {
			out.fields = append(out.fields, field{name, n})
			continue
		}
		if !optional {
			return nil
		}
	}
	return []choice{out}
}

// node returns the node of a schema, or nil if no value of it can be made up.
func (s *splitter) node(schema *apiextensionsv1.JSONSchemaProps, path string, optional bool, depth int) *node {
	whole := isStruct(schema) && schema.Default != nil // its fields have defaults, too
	n := s.place(path, optional && !whole, func() []choice {
		if depth > maxDepth {
			return nil
		}
		return s.choices(schema, path, depth)
	})
	if n != nil {
		n.dropsEmpty = optional && whole
	}
	if n != nil && n.branch != nil {
		n.branch.rare = s.rare[path]
	}
	return n
}

// place returns the node at a path, or nil if there is no choice. The branch of a place comes before those in it.
func (s *splitter) place(path string, optional bool, within func() []choice) *node {
	at := len(s.branches)
	b := &branch{path: path}
	s.branches = append(s.branches, b)
	var choices []choice
	if optional {
		choices = append(choices, leftOut)
	}
	choices = append(choices, within()...)
	if len(choices) == 0 {
		s.branches = s.branches[:at]
		return nil
	}
	n := &node{branch: b, choices: choices}
	if b.choices = choices; len(choices) == 1 {
		n.branch = nil
		s.branches = slices.DeleteFunc(s.branches, func(other *branch) bool { return other == b })
	}
	return n
}

func isStruct(schema *apiextensionsv1.JSONSchemaProps) bool {
	return schema.Type == "object" && (schema.AdditionalProperties == nil || len(schema.Properties) > 0)
}

// choices returns the choices of a schema, the simplest first, without that to leave it out.
func (s *splitter) choices(schema *apiextensionsv1.JSONSchemaProps, path string, depth int) []choice {
	switch {
	case len(schema.Enum) > 0:
		return s.enumeration(schema, path)
	case schema.XIntOrString:
		return []choice{constant(int64(1))}
	case schema.Type == "boolean":
		return withoutDefault(schema, []choice{listed(false), listed(true)})
	case schema.Type == "integer" || schema.Type == "number":
		return s.numbers(schema, path)
	case schema.Type == "string":
		return s.texts(schema, path)
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil:
		return s.list(schema, path, depth)
	case schema.Type == "object" && !isStruct(schema):
		return s.mapping(schema, path, depth)
	case schema.Type == "object":
		return s.structure(schema, path, depth)
	}
	return []choice{{label: "empty", made: true, literal: func(int) any { return map[string]any{} }}}
}

// constant returns the choice of a value.
func constant(value any) choice {
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Append(nil, value)
	}
	return choice{label: string(text), literal: func(int) any { return value }, coincides: true}
}

// listed returns the choice of a value that the schema lists.
func listed(value any) choice {
	c := constant(value)
	c.listed = true
	return c
}

// decoded returns a value of a schema.
func decoded(raw apiextensionsv1.JSON) (value any, ok bool) {
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return nil, false
	}
	if f, isNumber := value.(float64); isNumber && f == float64(int64(f)) {
		return int64(f), true
	}
	return value, true
}

// withoutDefault returns choices without that of the default, which is the same as to leave the field out.
func withoutDefault(schema *apiextensionsv1.JSONSchemaProps, choices []choice) []choice {
	if schema.Default == nil {
		return choices
	}
	value, _ := decoded(*schema.Default)
	label := constant(value).label
	return slices.DeleteFunc(choices, func(c choice) bool { return c.label == label })
}

// list returns lists with no, one and two elements, and with as many as the schema and the package name.
func (s *splitter) list(schema *apiextensionsv1.JSONSchemaProps, path string, depth int) []choice {
	named := s.counted[path]
	if schema.MaxItems != nil {
		named = append(slices.Clip(named), int(min(*schema.MaxItems, maxCounted+1)))
	}
	out := []choice{}
	var element *node
	for _, n := range lengths(schema.MinItems, schema.MaxItems, named) {
		if n > 0 && element == nil {
			if element = s.node(schema.Items.Schema, path+"[]", false, depth+1); element == nil {
				return out
			}
		}
		out = append(out, listOf(n, element))
	}
	s.rare[path] = rareLists(schema, out, element)
	return out
}

// listOf returns the choice of a list of some length.
func listOf(n int, element *node) choice {
	out := choice{label: manyOf(n, "element"), elements: []*node{}, coincides: n > 1}
	for range n {
		out.elements = append(out.elements, element)
	}
	return out
}

// mapping returns maps with no, one and two keys, and with as many as the package names.
func (s *splitter) mapping(schema *apiextensionsv1.JSONSchemaProps, path string, depth int) []choice {
	out := []choice{}
	var value *node
	for _, n := range lengths(schema.MinProperties, schema.MaxProperties, s.counted[path]) {
		if n > 0 && value == nil {
			if schema.AdditionalProperties.Schema == nil {
				return out
			}
			if value = s.node(schema.AdditionalProperties.Schema, path+"[]", false, depth+1); value == nil {
				return out
			}
		}
		out = append(out, mapOf(n, value))
	}
	s.rare[path] = rareMaps(schema, out, value)
	return out
}

// mapOf returns the choice of a map with some number of keys, which are made up.
func mapOf(n int, value *node) choice {
	out := choice{label: manyOf(n, "key"), entries: []entry{}, made: n > 0, coincides: n > 1}
	for i := range n {
		out.entries = append(out.entries, entry{madeKey + suffix(i), value})
	}
	return out
}

// lengths returns the numbers of elements to try, the lowest first: up to the usual number, the lowest that the schema
// allows and the next one, and those that are named, as far as the schema allows them.
func lengths(lowest, highest *int64, named []int) []int {
	low := 0
	if lowest != nil {
		low = int(min(max(*lowest, 0), 64))
	}
	out := []int{low}
	for n := range maxElements + 1 {
		out = append(out, n)
	}
	if low >= maxElements {
		out = append(out, low+1)
	}
	for _, n := range named {
		if n <= maxCounted {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(n int) bool {
		return n < low || highest != nil && int64(n) > max(*highest, 0)
	})
}

// manyOf returns a number of elements as a label.
func manyOf(n int, noun string) string {
	if n == 0 {
		return "no " + noun
	}
	return counted(n, noun)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// suffix tells the elements of a list apart.
func suffix(element int) string {
	if element == 0 {
		return ""
	}
	return fmt.Sprintf("-%d", element+1)
}
