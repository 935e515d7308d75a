package crd

import (
	"fmt"
	"strings"

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
	case "matchN":
		if g.addMatchN(at, schema, c) {
			return true
		}
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

// addMatchN makes a rule of matchN over structs that only say which fields exist, and reports whether it could.
func (g *generator) addMatchN(at location, schema *schemaProps, c validatorCall) bool {
	if schema.Type != "object" || schema.Nullable || len(c.args) != 2 {
		return false
	}
	count, ok := countRule(c.args[0])
	arms, err := c.args[1].List()
	if !ok || err != nil {
		return false
	}
	var terms, names []string
	for arms.Next() {
		guards, said, ok := existing(schema, arms.Value())
		if !ok {
			return false
		}
		terms, names = append(terms, conjunction(guards)), append(names, said)
	}
	if len(terms) == 0 {
		return false
	}
	g.pending = append(g.pending, pendingRule{
		at: at, structPath: at.path,
		write: func(*schemaProps) (rule, bool) {
			return rule{
				text:    "[" + strings.Join(terms, ", ") + "].filter(is, is).size() " + count,
				message: "the number of these that are set must be " + strings.TrimPrefix(count, "== ") + ": " + strings.Join(names, ", "),
			}, true
		},
		untranslated: func() { g.unsupported(at, c.name) },
	})
	return true
}

// countRule returns how a number is compared with the first argument of matchN.
func countRule(v cue.Value) (string, bool) {
	if n, err := v.Int64(); err == nil {
		return fmt.Sprintf("== %d", n), true
	}
	op, args := v.Expr()
	if len(args) != 1 {
		return "", false
	}
	n, err := args[0].Int64()
	text := map[cue.Op]string{cue.LessThanOp: "<", cue.LessThanEqualOp: "<=", cue.GreaterThanOp: ">", cue.GreaterThanEqualOp: ">=", cue.NotEqualOp: "!="}[op]
	return fmt.Sprintf("%s %d", text, n), err == nil && text != ""
}

// existing returns the conditions of a struct that requires optional fields of a schema, whatever their values are.
func existing(schema *schemaProps, arm cue.Value) (guards []string, names string, ok bool) {
	fields, err := arm.Fields(cue.Optional(true), cue.Patterns(true), cue.Definitions(true), cue.Hidden(true))
	if err != nil || arm.IncompleteKind() != cue.StructKind {
		return nil, "", false
	}
	var said []string
	for fields.Next() {
		sel := fields.Selector()
		if sel.ConstraintType() != cue.RequiredConstraint || fields.Value().IncompleteKind() != cue.TopKind {
			return nil, "", false
		}
		f := lookUp(schema, []string{sel.Unquoted()})
		if !f.known || f.has == "" || f.leaf.Nullable {
			return nil, "", false
		}
		guards, said = append(guards, f.has), append(said, sel.Unquoted())
	}
	return guards, strings.Join(said, " with "), len(said) > 0
}
