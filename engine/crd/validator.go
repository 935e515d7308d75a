package crd

import (
	"fmt"

	"cuelang.org/go/cue"
)

// durationPattern is what time.ParseDuration accepts, which is what CUE accepts; the
// format "duration" of the API server also accepts "3 weeks".
const durationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// counts are the validators with one number for an argument.
var counts = map[string]func(schema *schemaProps, n int64){
	"strings.MinRunes": func(s *schemaProps, n int64) { s.MinLength = highest(s.MinLength, n) },
	"strings.MaxRunes": func(s *schemaProps, n int64) { s.MaxLength = lowest(s.MaxLength, n) },
	"list.MinItems":    func(s *schemaProps, n int64) { s.MinItems = highest(s.MinItems, n) },
	"list.MaxItems":    func(s *schemaProps, n int64) { s.MaxItems = lowest(s.MaxItems, n) },
	"struct.MinFields": func(s *schemaProps, n int64) { s.MinProperties = highest(s.MinProperties, n) },
	"struct.MaxFields": func(s *schemaProps, n int64) { s.MaxProperties = lowest(s.MaxProperties, n) },
	"math.MultipleOf":  func(s *schemaProps, n int64) { s.MultipleOf = new(float64(n)) },
}

// shapes are the validators without arguments.
var shapes = map[string]func(schema *schemaProps){
	"time.Duration": func(s *schemaProps) { matches(s, durationPattern) },
	"time.Time":     func(s *schemaProps) { formatted(s, "date-time") },
	"net.IPv4":      func(s *schemaProps) { formatted(s, "ipv4") },
	"net.IPv6":      func(s *schemaProps) { formatted(s, "ipv6") },
	"net.IP": func(s *schemaProps) {
		s.AnyOf = append(s.AnyOf, schemaProps{Format: "ipv4"}, schemaProps{Format: "ipv6"})
	},
}

// layouts are the arguments of time.Format that have a format in OpenAPI.
var layouts = map[string]string{
	"2006-01-02":                          "date",
	"2006-01-02T15:04:05Z07:00":           "date-time",
	"2006-01-02T15:04:05.999999999Z07:00": "date-time",
}

// instead says what to write for validators that people will try.
var instead = map[string]string{
	"matchN":   `write the type alone, and the choice as @crd(rule="…")`,
	"matchIf":  `write the type alone, and the condition as @crd(rule="…")`,
	"net.FQDN": `write a pattern, as in =~"^[a-z0-9.-]+$"`,
	"net.IP":   "write string & net.IP: a CR holds addresses as strings",
	"net.IPv4": "write string & net.IPv4: a CR holds addresses as strings",
	"net.IPv6": "write string & net.IPv6: a CR holds addresses as strings",
}

// validator adds what a validator of CUE's standard library demands.
func (g *generator) validator(at site, schema *schemaProps, c call) bool {
	at = at.in(c.pos)
	if shape, ok := shapes[c.name]; ok && len(c.args) == 0 {
		shape(schema)
		return true
	}
	if count, ok := counts[c.name]; ok && len(c.args) == 1 {
		if n, err := c.args[0].Int64(); err == nil {
			count(schema, n)
			return true
		}
	}
	switch c.name {
	case "time.Format":
		if format := layouts[text(c.args)]; format != "" {
			formatted(schema, format)
			return true
		}
	case "list.UniqueItems":
		return g.unique(at, schema)
	}
	g.unsupported(at, c.name)
	return false
}

// formatted adds a format to a string. It goes into allOf: beside the type of a string, it
// would keep the API server from refusing a list there.
func formatted(schema *schemaProps, format string) {
	schema.AllOf = append(schema.AllOf, schemaProps{Format: format})
}

// unique makes a set of a list of scalars. uniqueItems itself is forbidden in a CRD,
// because comparing all structs with each other takes too long.
func (g *generator) unique(at site, schema *schemaProps) bool {
	if schema.Items == nil || schema.Items.Schema.Type == "object" || schema.Items.Schema.Type == "array" {
		g.fault(at, "the API server does not compare structs with each other",
			"drop list.UniqueItems, and write @crd(listType=map, listMapKey=name) if a field tells them apart")
		return false
	}
	schema.XListType = new("set")
	return true
}

func (g *generator) unsupported(at site, name string) {
	hint, ok := instead[name]
	if !ok {
		hint = `write the type alone, and the condition as @crd(rule="…") or in a component's requires`
	}
	g.fault(at, fmt.Sprintf("a CRD cannot express %s", name), hint)
}

func text(args []cue.Value) string {
	if len(args) != 1 {
		return ""
	}
	s, err := args[0].String()
	if err != nil {
		return ""
	}
	return s
}
