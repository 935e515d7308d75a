// Package shape makes up schemas of custom resources, for tests that demand something of
// every schema.
//
//	source := shape.Prelude + "#Spec: " + shape.Of(data)
//
// The same bytes give the same schema. Each has some of what people write: types and
// bounds, defaults, optional and required fields, maps and lists, definitions, rules over
// fields that have defaults, and some of what no CustomResourceDefinition can say.
package shape

import (
	"fmt"
	"strings"
)

// Prelude is what every schema may refer to.
const Prelude = `import (
	"list"
	"strings"
	"struct"
	"time"
)
#Bounded: int & >=1 & <=10
#Enum:    "a" | "b" | "c"
#Sub:     {x: int | *1, y?: string}
#Must:    {x!: int}
#Tree:    {v: int, kids?: [...#Tree]}
#List:    [...string] & list.MinItems(1)
_unused:  [list.MinItems(1), strings.MinRunes(1), struct.MinFields(1), time.Duration]
`

// Of returns a struct that is made from bytes.
func Of(data []byte) string {
	s := &shaper{data: data}
	return s.structure(4)
}

// shaper turns bytes into CUE. It always ends: every choice takes a byte, and
// without bytes left the first choice is taken, which is a leaf.
type shaper struct {
	data []byte
}

func (s *shaper) choose(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % n
}

var leaves = []string{
	"int", "string", "bool", "number", "bytes", "float", "null", "_", "{...}", "uint8", "int32", "uint64",
	"int & >=1 & <=100", "int | *3", "#Bounded | *2", "int & >0 | *0", `#Enum`, `#Enum | *"b"`, `*"x" | string`,
	`=~"^a" | *"ab"`, `!="" | *"z"`, `strings.MinRunes(2) & strings.MaxRunes(4)`, `time.Duration | *"1s"`,
	"int | string", `int | string | *"x"`, "null | string", "*null | int", `null | "a" | "b"`, "1 | 2 | *3", "true", `"const"`, "1.5",
	"[...int]", "#List", `#List | *["a"]`, "[string, ...string]", "[int, int]", "[...string] | *[]", "[int, string]",
	"{[string]: int}", "{[string]: #Sub}", "{[string]: int} & struct.MinFields(1)", "#Sub", "#Must", "#Tree", "#Sub | *{x: 5}",
	"null | #Sub", "#Sub | #Must", "f0", "int & >=f1", `"x-\(f0)"`, "number | string", "_ @crd(preserveUnknownFields)", "string @crd(immutable)",
	"[...#Must] @crd(listType=map,listMapKey=x)", "[...#Sub] @crd(listType=map,listMapKey=x)", "int & string",
}

func (s *shaper) value(depth int) string {
	if depth == 0 {
		return leaves[s.choose(len(leaves))]
	}
	switch s.choose(8) {
	case 0, 1, 2, 3:
		return leaves[s.choose(len(leaves))]
	case 4:
		return s.structure(depth - 1)
	case 5:
		return "[..." + s.structure(depth-1) + "]"
	case 6:
		return "{[string]: " + s.structure(depth-1) + "}"
	}
	return "{#Sub, " + strings.TrimPrefix(s.structure(depth-1), "{")
}

func (s *shaper) structure(depth int) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range s.choose(5) {
		marker := []string{"", "", "?", "!"}[s.choose(4)]
		fmt.Fprintf(&b, "f%d%s: %s\n", i, marker, s.value(depth))
	}
	b.WriteString("}")
	return b.String()
}

// Defaults returns a struct, made from bytes, all of whose fields have defaults or may be
// left out, with rules that look at them, at any depth.
func Defaults(data []byte) string {
	s := &shaper{data: data}
	return s.defaulted(3)
}

// defaultLeaves are types with a default, and what is true of each of their values.
var defaultLeaves = []struct{ typ, rule string }{
	{"int | *3", "self.%s <= 1000000"},
	{"int & >=1 & <=100 | *7", "self.%s >= 1"},
	{`string | *"x"`, "self.%s.size() < 100000"},
	{`*"b" | "a" | "c"`, "self.%s in ['a', 'b', 'c']"},
	{"bool | *false", "self.%s || !self.%[1]s"},
	{"[...int]", "self.%s.all(x, x == x)"},
	{`[...string] | *["a"]`, "self.%s.size() >= 0"},
	{"[...{name!: string, n: int | *1}]", "self.%s.all(e, e.n <= 1000000)"},
	{"{[string]: int}", "self.%s.all(k, k != '')"},
	{"*null | string", "!has(self.%s) || self.%[1]s != 'z'"},
	{"#Sub", "self.%s.x <= 1000000"},
	{"int | *3", "self.%s == 4"},        // not true of the default
	{"int | *3", "self.%s.size() == 4"}, // of another type
	{"int | *3", "self.%snot == 4"},     // of a field that is not there
}

func (s *shaper) defaulted(depth int) string {
	var b strings.Builder
	var rules []string
	b.WriteString("{\n")
	for i := range 1 + s.choose(4) {
		name := fmt.Sprintf("f%d", i)
		if depth > 0 && s.choose(3) == 2 {
			fmt.Fprintf(&b, "%s: %s\n", name, s.defaulted(depth-1))
			rules = append(rules, fmt.Sprintf("has(self.%s)", name))
			continue
		}
		// The wrong ones are rare: each is seen in some schema, and most have none.
		n := len(defaultLeaves) - 3
		if s.choose(12) == 11 {
			n = len(defaultLeaves)
		}
		leaf := defaultLeaves[s.choose(n)]
		marker := []string{"", "", "", "?"}[s.choose(4)]
		fmt.Fprintf(&b, "%s%s: %s\n", name, marker, leaf.typ)
		rule := fmt.Sprintf(leaf.rule, name)
		if marker == "?" {
			rule = fmt.Sprintf("!has(self.%s) || (%s)", name, rule)
		}
		rules = append(rules, rule)
	}
	for _, rule := range rules {
		if s.choose(2) == 1 {
			fmt.Fprintf(&b, "@crd(rule=%q)\n", rule)
		}
	}
	b.WriteString("}")
	return b.String()
}
