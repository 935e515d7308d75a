package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
)

// An emitter writes values as CUE.
type emitter struct {
	// release is the name of a release that stands for the name of the resource, or nil.
	release *regexp.Regexp
}

// newEmitter returns an emitter. The name of a release, if there is one, is replaced where it is a word of its own.
func newEmitter(release string) *emitter {
	if release == "" {
		return &emitter{}
	}
	return &emitter{regexp.MustCompile(`(^|[^a-zA-Z0-9])` + regexp.QuoteMeta(release) + `($|[^a-zA-Z0-9])`)}
}

// value writes a value. References stand as they are.
func (e *emitter) value(b *strings.Builder, v any, depth int) {
	switch v := v.(type) {
	case map[string]any:
		e.fields(b, v, depth)
	case []any:
		e.list(b, v, depth)
	case reference:
		b.WriteString(string(v))
	case string:
		b.WriteString(e.text(v, depth))
	case nil:
		b.WriteString("null")
	default:
		data, err := json.Marshal(v)
		if err != nil {
			data = fmt.Append(nil, v)
		}
		b.Write(data)
	}
}

// first are the fields that people write first.
var first = []string{"apiVersion", "kind", "metadata", "name"}

// fields writes a struct.
func (e *emitter) fields(b *strings.Builder, of map[string]any, depth int) {
	b.WriteString("{")
	for _, name := range slices.SortedFunc(maps.Keys(of), byHabit) {
		b.WriteString("\n" + strings.Repeat("\t", depth+1))
		e.field(b, name, of[name], depth+1)
	}
	if len(of) > 0 {
		b.WriteString("\n" + strings.Repeat("\t", depth))
	}
	b.WriteString("}")
}

// field writes a field. A struct of one field needs no braces.
func (e *emitter) field(b *strings.Builder, name string, v any, depth int) {
	b.WriteString(label(name) + ": ")
	if inner, isStruct := v.(map[string]any); isStruct && len(inner) == 1 {
		for name, v := range inner {
			e.field(b, name, v, depth)
		}
		return
	}
	e.value(b, v, depth)
}

// byHabit orders the fields of a struct as people write them.
func byHabit(a, b string) int {
	rank := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
}

// list writes a list.
func (e *emitter) list(b *strings.Builder, of []any, depth int) {
	b.WriteString("[")
	for i, v := range of {
		if i > 0 {
			b.WriteString(", ")
		}
		e.value(b, v, depth)
	}
	b.WriteString("]")
}

// label writes the name of a field.
func label(name string) string {
	if ast.IsValidIdent(name) && !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "#") && !slices.Contains(reservedNames, name) {
		return name
	}
	return literal.String.Quote(name)
}

// text writes a text, with the name of the release replaced by that of the resource.
func (e *emitter) text(s string, depth int) string {
	if e.release == nil || !e.release.MatchString(s) {
		return literal.String.WithOptionalTabIndent(depth).Quote(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for s != "" {
		at := e.release.FindStringSubmatchIndex(s)
		if at == nil {
			b.WriteString(quoted(s))
			break
		}
		b.WriteString(quoted(s[:at[3]])) // with what is before the name
		b.WriteString(`\(cr.metadata.name)`)
		s = s[at[4]:] // from what is behind it, which may be before another one
	}
	b.WriteByte('"')
	return b.String()
}

// quoted returns a text as it stands between quotation marks.
func quoted(s string) string {
	q := literal.String.Quote(s)
	return q[1 : len(q)-1]
}
