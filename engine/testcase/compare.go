package testcase

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/redact"
)

// maxShown bounds how much of a value a message has, in bytes.
const maxShown = 200

// A comparison finds where something is not as it is wanted.
type comparison struct {
	redactor *redact.Redactor
	// prefix is what the paths of differences begin with.
	prefix string
	// index knows which names the package may have.
	index *syntax.Index
	// secrets are the paths of the content of Secrets.
	secrets map[string]bool
	found   []Difference
}

// addf adds a difference, with secrets masked.
func (c *comparison) addf(at fault.Position, path, format string, args ...any) {
	text := c.redactor.Text(fmt.Sprintf(format, args...))
	switch {
	case path != "":
		path = c.prefix + path
	case c.prefix != "":
		text = strings.TrimSuffix(c.prefix, ".") + ": " + text
	}
	c.found = append(c.found, Difference{Position: at, Path: path, Message: text})
}

// compare compares a value with what is wanted at a path. Of a struct, only the wanted fields have to be there.
func (c *comparison) compare(path cue.Path, want cue.Value, got any) {
	switch want.IncompleteKind() {
	case cue.StructKind:
		c.compareStruct(path, want, got)
	case cue.ListKind:
		c.compareList(path, want, got)
	default:
		c.compareScalar(path, want, got)
	}
}

func (c *comparison) compareStruct(path cue.Path, want cue.Value, got any) {
	fields, err := want.Fields()
	have, isStruct := got.(map[string]any)
	if err != nil || !isStruct {
		c.differs(path, want, got)
		return
	}
	for fields.Next() {
		name, v := fields.Selector().Unquoted(), fields.Value()
		at := below(path, cue.Str(name))
		value, exists := have[name]
		if !exists {
			c.addf(program.PositionOf(v), at.String(), "want %s, and there is none, but %s", c.wanted(at, v), names(have))
			continue
		}
		c.compare(at, v, value)
	}
	c.comparePatterns(path, want, have)
}

// comparePatterns compares the fields that no wanted field names with the constraints on all fields, or optional ones,
// that the author of the test has written.
func (c *comparison) comparePatterns(path cue.Path, want cue.Value, have map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if want.LookupPath(cue.MakePath(cue.Str(name))).Exists() {
			continue
		}
		v := want.LookupPath(cue.MakePath(cue.Str(name).Optional()))
		if v.Exists() && !program.PositionOf(v).IsContract() {
			c.compare(below(path, cue.Str(name)), v, have[name])
		}
	}
}

func (c *comparison) compareList(path cue.Path, want cue.Value, got any) {
	elements, err := want.List()
	have, isList := got.([]any)
	if err != nil || !isList {
		c.differs(path, want, got)
		return
	}
	n := 0
	for ; elements.Next(); n++ {
		if n < len(have) {
			c.compare(below(path, cue.Index(n)), elements.Value(), have[n])
		}
	}
	others := want.LookupPath(cue.MakePath(cue.AnyIndex))
	open := others.Exists()
	for i := n; open && i < len(have); i++ {
		c.compare(below(path, cue.Index(i)), others, have[i])
	}
	if n > len(have) || n < len(have) && !open {
		c.addf(program.PositionOf(want), path.String(), "want %s, got %d: %s", elementsOf(n), len(have), c.value(path, have))
		c.replaceable(path, want, have)
	}
}

// elementsOf says how many elements there are.
func elementsOf(n int) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

// compareScalar compares a value: it has to be the same, and a constraint has to hold.
func (c *comparison) compareScalar(path cue.Path, want cue.Value, got any) {
	value := cuecontext.New().Encode(got)
	switch {
	case want.IsConcrete():
		a, errA := want.MarshalJSON()
		b, errB := value.MarshalJSON()
		if errA == nil && errB == nil && string(a) == string(b) {
			return
		}
	case want.Unify(value).Validate(cue.Concrete(true)) == nil:
		return
	}
	c.differs(path, want, got)
}

// differs adds that a value is not as it is wanted.
func (c *comparison) differs(path cue.Path, want cue.Value, got any) {
	c.addf(program.PositionOf(want), path.String(), "want %s, got %s", c.wanted(path, want), c.value(path, got))
	c.replaceable(path, want, got)
}

// replaceable notes the values of the last difference, unless one has a secret, or the wanted one is none: that something
// is not there, or a constraint, is never replaced.
func (c *comparison) replaceable(path cue.Path, want cue.Value, got any) {
	data, err := json.Marshal(got)
	if err != nil || c.secret(path) || c.redactor.Text(string(data)) != string(data) || want.IncompleteKind() == cue.NullKind {
		return
	}
	written, err := want.MarshalJSON()
	if err != nil {
		return
	}
	last := &c.found[len(c.found)-1]
	last.Want, last.Got = written, data
}

// wanted returns what is wanted as a text, without the content of Secrets.
func (c *comparison) wanted(path cue.Path, v cue.Value) string {
	switch {
	case c.secret(path):
		return "other content"
	case v.IncompleteKind() == cue.StructKind:
		return "a struct"
	}
	return short(strings.Join(strings.Fields(fmt.Sprint(v)), " "))
}

// value returns a value as a text, without the content of Secrets.
func (c *comparison) value(path cue.Path, v any) string {
	if c.secret(path) {
		return "content that is not shown"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "a value that is no JSON"
	}
	return short(string(data))
}

// secret reports whether a value is in the content of a Secret, or has it.
func (c *comparison) secret(path cue.Path) bool {
	at := path.String()
	for content := range c.secrets {
		if at == content || strings.HasPrefix(at, content+".") || strings.HasPrefix(content, at+".") {
			return true
		}
	}
	return false
}

// short returns the beginning of a long text.
func short(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "..."
}

// below returns a path with one more element.
func below(path cue.Path, s cue.Selector) cue.Path {
	return cue.MakePath(append(slices.Clone(path.Selectors()), s)...)
}
