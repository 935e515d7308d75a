package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/literal"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// A schemaWriter writes an OpenAPI schema as CUE. What it writes is not trusted: the definition that the package
// generates is compared with the one that was imported.
type schemaWriter struct {
	b       strings.Builder
	imports map[string]bool
}

// fields writes the properties of a struct.
func (w *schemaWriter) fields(of *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		p := of.Properties[name]
		comment(&w.b, p.Description)
		mark := ""
		switch {
		case slices.Contains(of.Required, name) && p.Default == nil:
			mark = "!"
		case p.Default == nil:
			mark = "?"
		}
		w.b.WriteString(label(name) + mark + ": ")
		w.value(&p)
		for _, a := range attributesOf(&p) {
			w.b.WriteString(" " + a)
		}
		w.b.WriteString("\n")
	}
}

// comment writes a description in front of a field. Without one there is nothing to say: what a comment says becomes the
// description in the definition that the package generates, and kubectl explain prints it.
func comment(b *strings.Builder, description string) {
	for line := range strings.Lines(description) {
		b.WriteString("// " + strings.TrimRight(line, "\r\n") + "\n")
	}
}

// value writes the type of a schema, and its default.
func (w *schemaWriter) value(s *apiextensionsv1.JSONSchemaProps) {
	if s.Default != nil && len(s.Properties) == 0 {
		w.b.WriteString("*")
		w.literal(*s.Default)
		w.b.WriteString(" | ")
	}
	var parts []string
	switch {
	case len(s.Enum) > 0:
		parts = append(parts, w.enum(s))
	case s.XIntOrString:
		parts = append(parts, w.intOrString(s))
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		parts = append(parts, "[..."+w.inner(s.Items.Schema)+"]")
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		parts = append(parts, "{[string]: "+w.inner(s.AdditionalProperties.Schema)+"}")
	case s.Type == "object" && len(s.Properties) == 0:
		parts = append(parts, "{...}")
	case s.Type == "object":
		nested := &schemaWriter{imports: w.imports}
		nested.fields(s)
		parts = append(parts, "{\n"+nested.b.String()+"}")
	case s.Type == "boolean":
		parts = append(parts, "bool")
	case s.Type == "integer":
		parts = append(parts, "int")
	case s.Type == "string" && s.Format == "byte" && isPlain(s):
		parts = append(parts, "bytes")
	default:
		parts = append(parts, s.Type) // string and number are words of CUE
	}
	if !s.XIntOrString {
		parts = append(parts, w.constraints(s)...)
	}
	text := strings.Join(parts, " & ")
	if s.Nullable {
		text = "null | " + text
		if len(parts) > 1 {
			text = "null | (" + strings.Join(parts, " & ") + ")"
		}
	}
	w.b.WriteString(text)
}

// intOrString writes the type of a number or a text, such as a quantity. The bounds of numbers and the patterns and lengths of
// texts stay with their own type: behind both of them, CUE would drop the type that cannot have them.
func (w *schemaWriter) intOrString(s *apiextensionsv1.JSONSchemaProps) string {
	number := &apiextensionsv1.JSONSchemaProps{Minimum: s.Minimum, ExclusiveMinimum: s.ExclusiveMinimum, Maximum: s.Maximum, ExclusiveMaximum: s.ExclusiveMaximum}
	text := &apiextensionsv1.JSONSchemaProps{Pattern: s.Pattern, MinLength: s.MinLength, MaxLength: s.MaxLength}
	arm := func(word string, bounds *apiextensionsv1.JSONSchemaProps) string {
		return strings.Join(append([]string{word}, w.constraints(bounds)...), " & ")
	}
	return "(" + arm("int", number) + " | " + arm("string", text) + ")"
}

// isPlain reports whether a text has no default, and no bound, which would be of bytes otherwise.
func isPlain(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.Default == nil && s.Pattern == "" && s.MinLength == nil && s.MaxLength == nil
}

// inner returns the type of an element.
func (w *schemaWriter) inner(s *apiextensionsv1.JSONSchemaProps) string {
	nested := &schemaWriter{imports: w.imports}
	nested.value(s)
	return nested.b.String()
}

// literal writes a value.
func (w *schemaWriter) literal(raw apiextensionsv1.JSON) {
	var v any
	if err := kjson.Unmarshal(raw.Raw, &v); err == nil {
		(&emitter{}).value(&w.b, v, 0)
	}
}

// enum writes the values of an enumeration, without the default, which stands before them.
func (w *schemaWriter) enum(s *apiextensionsv1.JSONSchemaProps) string {
	var values []string
	for _, raw := range s.Enum {
		nested := &schemaWriter{imports: w.imports}
		nested.literal(raw)
		values = append(values, nested.b.String())
	}
	return "(" + strings.Join(values, " | ") + ")"
}

// constraints writes the bounds of a value.
func (w *schemaWriter) constraints(s *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	bound := func(limit *float64, exclusive bool, operator string) {
		if limit == nil {
			return
		}
		if !exclusive {
			operator += "="
		}
		out = append(out, operator+strconv.FormatFloat(*limit, 'f', -1, 64))
	}
	bound(s.Minimum, s.ExclusiveMinimum, ">")
	bound(s.Maximum, s.ExclusiveMaximum, "<")
	if s.Format == "int32" && (s.Minimum == nil || s.Maximum == nil) {
		out = append(out, "int32")
	}
	if s.Pattern != "" {
		out = append(out, "=~"+literal.String.Quote(s.Pattern))
	}
	for _, c := range []struct {
		n    *int64
		call string
	}{
		{s.MinLength, "strings.MinRunes"}, {s.MaxLength, "strings.MaxRunes"}, {s.MinItems, "list.MinItems"},
		{s.MaxItems, "list.MaxItems"}, {s.MinProperties, "struct.MinFields"}, {s.MaxProperties, "struct.MaxFields"},
	} {
		if c.n != nil {
			out = append(out, fmt.Sprintf("%s(%d)", c.call, *c.n))
			w.imports[strings.SplitN(c.call, ".", 2)[0]] = true
		}
	}
	switch s.Format {
	case "date-time":
		out = append(out, "time.Time")
		w.imports["time"] = true
	case "ipv4", "ipv6":
		out = append(out, "net.IPv"+s.Format[3:])
		w.imports["net"] = true
	}
	return out
}

// attributesOf returns what CUE cannot say of a schema.
func attributesOf(s *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		out = append(out, "@crd(preserveUnknownFields)")
	}
	if s.XListType != nil && *s.XListType != "atomic" {
		parts := []string{"listType=" + *s.XListType}
		for _, key := range s.XListMapKeys {
			parts = append(parts, "listMapKey="+key)
		}
		out = append(out, "@crd("+strings.Join(parts, ", ")+")")
	}
	for _, v := range s.XValidations {
		text := "rule=" + literal.String.Quote(v.Rule)
		if v.Message != "" {
			text += ", message=" + literal.String.Quote(v.Message)
		}
		out = append(out, "@crd("+text+")")
	}
	return out
}

// differences returns how a generated schema differs from the one that was imported: descriptions do not count, nor
// limits where there were none, which keep the cost of a resource bounded.
func differences(path string, want, got *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(want.Properties)) {
		a := want.Properties[name]
		b, has := got.Properties[name]
		if !has {
			out = append(out, path+"."+name+" would be missing")
			continue
		}
		out = append(out, differences(path+"."+name, &a, &b)...)
	}
	if want.Items != nil && want.Items.Schema != nil && got.Items != nil && got.Items.Schema != nil {
		out = append(out, differences(path+"[]", want.Items.Schema, got.Items.Schema)...)
	}
	if a, b := want.AdditionalProperties, got.AdditionalProperties; a != nil && b != nil && a.Schema != nil && b.Schema != nil {
		out = append(out, differences(path+"[]", a.Schema, b.Schema)...)
	}
	a, b := shallow(want), shallow(got)
	for _, limit := range []string{"maxLength", "maxItems", "maxProperties"} {
		if _, limited := a[limit]; !limited {
			delete(b, limit)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if fmt.Sprint(a[key]) != fmt.Sprint(b[key]) {
			out = append(out, path+": "+changed(key, a[key], b[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, has := a[key]; !has {
			out = append(out, fmt.Sprintf("%s: %s would be %s, and is not there", path, key, inJSON(b[key])))
		}
	}
	return out
}

// changed says how a key of a schema would be in the package.
func changed(key string, want, got any) string {
	if got == nil {
		return fmt.Sprintf("%s is %s, and the package would have none", key, inJSON(want))
	}
	return fmt.Sprintf("%s is %s, and would be %s", key, inJSON(want), inJSON(got))
}

// inJSON returns a value as JSON, a text without quotation marks.
func inJSON(v any) string {
	if text, is := v.(string); is {
		return text
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // unreachable: it was read from JSON
	}
	return string(data)
}

// notKept returns what a package leaves out of a schema that no resource is refused for, for notes.
func notKept(path string, want *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	if want.XMapType != nil && *want.XMapType == "atomic" {
		out = append(out, path+": x-kubernetes-map-type atomic is left out: a server-side apply merges the fields of several managers")
	}
	for _, name := range slices.Sorted(maps.Keys(want.Properties)) {
		p := want.Properties[name]
		out = append(out, notKept(path+"."+name, &p)...)
	}
	if want.Items != nil && want.Items.Schema != nil {
		out = append(out, notKept(path+"[]", want.Items.Schema)...)
	}
	if want.AdditionalProperties != nil && want.AdditionalProperties.Schema != nil {
		out = append(out, notKept(path+"[]", want.AdditionalProperties.Schema)...)
	}
	return out
}

// shallow returns the keys of a schema that are not schemas, and mean something to an API server.
func shallow(s *apiextensionsv1.JSONSchemaProps) map[string]any {
	c := s.DeepCopy()
	c.Properties, c.Items, c.AdditionalProperties, c.Description = nil, nil, nil, ""
	slices.Sort(c.Required)
	slices.SortFunc(c.Enum, func(a, b apiextensionsv1.JSON) int { return bytes.Compare(a.Raw, b.Raw) })
	if c.XListType != nil && *c.XListType == "atomic" {
		c.XListType = nil // it is what a list is without it
	}
	if c.XIntOrString {
		c.AnyOf = nil // the two types
	}
	c.XMapType = nil // a note says what is left out
	if len(c.AllOf) == 1 && c.Format == "" && reflect.DeepEqual(c.AllOf[0], apiextensionsv1.JSONSchemaProps{Format: c.AllOf[0].Format}) {
		c.Format, c.AllOf = c.AllOf[0].Format, nil // where a package has the format of a text
	}
	if c.Type == "integer" && c.Format == "int32" { // an API server accepts what fits into it
		c.Minimum, c.Maximum = cmp.Or(c.Minimum, new(float64(math.MinInt32))), cmp.Or(c.Maximum, new(float64(math.MaxInt32)))
		c.Format = ""
	}
	if c.Format == "int64" {
		c.Format = "" // what an integer is without it
	}
	out := map[string]any{}
	data, err := json.Marshal(c)
	if err == nil {
		_ = json.Unmarshal(data, &out) // it was just written
	}
	return out
}
