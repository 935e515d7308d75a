package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/literal"
)

// A simpleSchema writes the schema of a ResourceGraphDefinition as CUE: each field is a text such as
// "integer | default=3 minimum=1".
type simpleSchema struct {
	b       strings.Builder
	imports map[string]bool
	// types are the schemas that other fields name.
	types map[string]any
	// optional are the fields that need not be set, and required those of them that have to be all the same, because
	// expressions need them, such as spec.name.
	optional, required map[string]bool
	// reasons say what cannot be written.
	reasons []string
}

// booleanWords are the names of which YAML makes another one unless they are quoted, by the one that it makes. No
// expression can read a field that is called true or false.
var booleanWords = map[string]string{"true": "y, yes and on", "false": "n, no and off"}

// maxSchemaDepth bounds how deep types refer to each other.
const maxSchemaDepth = 20

func (s *simpleSchema) refusef(path, format string, args ...any) {
	s.reasons = append(s.reasons, "spec.schema.spec"+path+": "+fmt.Sprintf(format, args...))
}

// require requires fields that are optional, and reports whether one of those given is.
func (s *simpleSchema) require(fields []string) bool {
	before := len(s.required)
	for _, at := range fields {
		if s.optional[at] {
			s.required[at] = true
		}
	}
	return len(s.required) > before
}

// fields writes the fields of a struct.
func (s *simpleSchema) fields(path string, of map[string]any, depth int) {
	if depth > maxSchemaDepth {
		s.refusef(path, "types are nested too deeply")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		at := path + "." + name
		if words := booleanWords[name]; words != "" {
			s.refusef(at, "YAML reads the names %s as the boolean %s, so that a user has to quote them: choose another name, or quote it in the definition, too", words, name)
			continue
		}
		switch v := of[name].(type) {
		case map[string]any:
			fmt.Fprintf(&s.b, "%s: {\n", label(name))
			s.fields(at, v, depth+1)
			s.b.WriteString("}\n")
		case string:
			s.field(at, name, v, depth)
		default:
			s.refusef(at, "a field is a text or a struct")
		}
	}
}

// markers are what a field has besides its type.
type markers map[string]string

// field writes one field.
func (s *simpleSchema) field(path, name, text string, depth int) {
	kind, rest, _ := strings.Cut(text, "|")
	m, err := markersOf(rest)
	if err != nil {
		s.refusef(path, "%v", err)
		return
	}
	parts := append([]string{s.typeOf(path, strings.TrimSpace(kind), depth)}, s.constraints(path, strings.TrimSpace(kind), m)...)
	value, mark := strings.Join(parts, " & "), "?"
	switch {
	case m["required"] == "true", s.required["spec"+path]:
		mark = "!"
	case m["default"] != "":
		mark, value = "", "*"+s.defaultOf(strings.TrimSpace(kind), m["default"])+" | "+value
	default:
		s.optional["spec"+path] = true
	}
	comment(&s.b, m["description"])
	immutable := ""
	if m["immutable"] == "true" {
		immutable = " @crd(immutable)"
	}
	fmt.Fprintf(&s.b, "%s%s: %s%s\n", label(name), mark, value, immutable)
}

// scalars are the types that have a word in CUE.
var scalars = map[string]string{"string": "string", "integer": "int", "boolean": "bool", "float": "number", "object": "{...}"}

// typeOf returns a type.
func (s *simpleSchema) typeOf(path, kind string, depth int) string {
	element, isList := strings.CutPrefix(kind, "[]")
	value, isMap := strings.CutPrefix(kind, "map[string]")
	named, isNamed := s.types[kind].(map[string]any)
	switch {
	case scalars[kind] != "":
		return scalars[kind]
	case isList:
		return "[..." + s.typeOf(path, element, depth+1) + "]"
	case isMap:
		return "{[string]: " + s.typeOf(path, value, depth+1) + "}"
	case isNamed:
		nested := &simpleSchema{imports: s.imports, types: s.types, optional: s.optional, required: s.required}
		nested.fields(path, named, depth+1)
		s.reasons = append(s.reasons, nested.reasons...)
		return "{\n" + nested.b.String() + "}"
	}
	s.refusef(path, "the type %s is not known", kind)
	return "_"
}

// defaultOf returns a default as CUE.
func (s *simpleSchema) defaultOf(kind, text string) string {
	if kind == "string" {
		return literal.String.Quote(text)
	}
	return text // a number, true, false, or a list or struct in JSON, which is CUE
}

// constraints returns the bounds of a field.
func (s *simpleSchema) constraints(path, kind string, m markers) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		value := m[name]
		switch name {
		case "required", "default", "description", "immutable":
		case "minimum":
			out = append(out, ">="+value)
		case "maximum":
			out = append(out, "<="+value)
		case "pattern":
			out = append(out, "=~"+literal.String.Quote(value))
		case "enum":
			var values []string
			for v := range strings.SplitSeq(value, ",") {
				values = append(values, s.defaultOf(kind, strings.TrimSpace(v)))
			}
			out = append(out, "("+strings.Join(values, " | ")+")")
		case "minLength", "maxLength":
			out = append(out, fmt.Sprintf("strings.%sRunes(%s)", strings.ToUpper(name[:1])+name[1:3], value))
			s.imports["strings"] = true
		case "minItems", "maxItems":
			out = append(out, fmt.Sprintf("list.%sItems(%s)", strings.ToUpper(name[:1])+name[1:3], value))
			s.imports["list"] = true
		default:
			s.refusef(path, "%s=%s has to be written by hand", name, value)
		}
	}
	return out
}

// markersOf reads markers such as `default="a b" minimum=1`. It errors where a quotation mark has no end.
func markersOf(text string) (markers, error) {
	out := markers{}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("%q is no marker", text)
		}
		var value string
		if strings.HasPrefix(rest, `"`) {
			end := strings.Index(rest[1:], `"`)
			if end < 0 {
				return nil, fmt.Errorf("%s has no end", rest)
			}
			value, text = rest[1:end+1], rest[end+2:]
		} else {
			value, text, _ = strings.Cut(rest, " ")
		}
		out[strings.TrimSpace(name)] = value
	}
	return out, nil
}
