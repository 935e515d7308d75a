package crd

import (
	"fmt"

	"cuelang.org/go/cue"
)

// durationPattern is what time.ParseDuration accepts, which is what CUE accepts; the
// format "duration" of the API server also accepts "3 weeks".
const durationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// countValidators are the validators whose only argument is a number.
var countValidators = map[string]func(schema *schemaProps, n int64){
	"strings.MinRunes": func(s *schemaProps, n int64) { s.MinLength = larger(s.MinLength, n) },
	"strings.MaxRunes": func(s *schemaProps, n int64) { s.MaxLength = smaller(s.MaxLength, n) },
	"list.MinItems":    func(s *schemaProps, n int64) { s.MinItems = larger(s.MinItems, n) },
	"list.MaxItems":    func(s *schemaProps, n int64) { s.MaxItems = smaller(s.MaxItems, n) },
	"struct.MinFields": func(s *schemaProps, n int64) { s.MinProperties = larger(s.MinProperties, n) },
	"struct.MaxFields": func(s *schemaProps, n int64) { s.MaxProperties = smaller(s.MaxProperties, n) },
	"math.MultipleOf":  func(s *schemaProps, n int64) { s.MultipleOf = new(float64(n)) },
}

// formatValidators are the validators without arguments.
var formatValidators = map[string]func(schema *schemaProps){
	"time.Duration": func(s *schemaProps) { addPattern(s, durationPattern) },
	"time.Time":     func(s *schemaProps) { addFormat(s, "date-time") },
	"net.IPv4":      func(s *schemaProps) { addFormat(s, "ipv4") },
	"net.IPv6":      func(s *schemaProps) { addFormat(s, "ipv6") },
	"net.IP": func(s *schemaProps) {
		s.AnyOf = append(s.AnyOf, schemaProps{Format: "ipv4"}, schemaProps{Format: "ipv6"})
	},
}

// timeFormats are the OpenAPI formats of the arguments of time.Format that have one.
var timeFormats = map[string]string{
	"2006-01-02":                          "date",
	"2006-01-02T15:04:05Z07:00":           "date-time",
	"2006-01-02T15:04:05.999999999Z07:00": "date-time",
}

// validatorHints say what to write instead of validators that people are likely to try.
var validatorHints = map[string]string{
	"matchN":   `write the type alone, and the choice as @crd(rule="…")`,
	"matchIf":  `write the type alone, and the condition as @crd(rule="…")`,
	"net.FQDN": `write a pattern, as in =~"^[a-z0-9.-]+$"`,
	"net.IP":   "write string & net.IP: a CR holds addresses as strings",
	"net.IPv4": "write string & net.IPv4: a CR holds addresses as strings",
	"net.IPv6": "write string & net.IPv6: a CR holds addresses as strings",
}

// addValidators adds the constraints of all calls, and reports whether it could.
func (g *generator) addValidators(at location, schema *schemaProps, calls []validatorCall) bool {
	ok := true
	for _, c := range calls {
		ok = g.addValidator(at, schema, c) && ok
	}
	return ok
}

// addValidator adds the constraint of a validator of CUE's standard library.
func (g *generator) addValidator(at location, schema *schemaProps, c validatorCall) bool {
	at = at.positionedAt(c.pos)
	if shape, ok := formatValidators[c.name]; ok && len(c.args) == 0 {
		shape(schema)
		return true
	}
	if count, ok := countValidators[c.name]; ok && len(c.args) == 1 {
		if n, err := c.args[0].Int64(); err == nil {
			count(schema, n)
			return true
		}
	}
	switch c.name {
	case "time.Format":
		if format := timeFormats[singleString(c.args)]; format != "" {
			addFormat(schema, format)
			return true
		}
	case "list.UniqueItems":
		return g.addUniqueItems(at, schema)
	}
	g.unsupported(at, c.name)
	return false
}

// addFormat adds a format to a string. It goes into allOf: next to the type string, it would
// make the API server accept a list there.
func addFormat(schema *schemaProps, format string) {
	schema.AllOf = append(schema.AllOf, schemaProps{Format: format})
}

// addUniqueItems makes a list of scalars a set. uniqueItems itself is forbidden in a CRD,
// because comparing all structs with each other takes too long.
func (g *generator) addUniqueItems(at location, schema *schemaProps) bool {
	if schema.Items == nil || schema.Items.Schema.Type == "object" || schema.Items.Schema.Type == "array" {
		g.fault(at, "the API server does not compare structs with each other",
			"drop list.UniqueItems, and write @crd(listType=map, listMapKey=name) if a field tells them apart")
		return false
	}
	schema.XListType = new("set")
	return true
}

func (g *generator) unsupported(at location, name string) {
	hint, ok := validatorHints[name]
	if !ok {
		hint = `write the type alone, and the condition as @crd(rule="…") or in a component's requires`
	}
	g.fault(at, fmt.Sprintf("a CRD cannot express %s", name), hint)
}

func singleString(args []cue.Value) string {
	if len(args) != 1 {
		return ""
	}
	s, err := args[0].String()
	if err != nil {
		return ""
	}
	return s
}
