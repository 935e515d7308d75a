package diff

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/redact"
)

// A path is the path of a field.
type path []step

// A step is one element of a path.
type step struct {
	name string // the name of a field, or ""
	text string // what it adds to the text of the path
	part fieldpath.Part
}

var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (p path) field(name string) path {
	if plain.MatchString(name) {
		return p.and(step{name, "." + name, fieldpath.Part{Field: name}})
	}
	return p.and(step{name, "[" + redact.Printable(strconv.Quote(name)) + "]", fieldpath.Part{Field: name}})
}

func (p path) index(i int) path {
	return p.and(step{text: "[" + strconv.Itoa(i) + "]", part: fieldpath.Part{Element: strconv.Itoa(i)}})
}

// item returns the path of an item of a list. shown is the value of its key as text.
func (p path) item(key, shown string, value any) path {
	return p.and(step{text: "[" + key + "=" + shown + "]", part: fieldpath.Part{Element: key + "=" + strconv.Quote(fmt.Sprint(value))}})
}

// parts returns the path for whoever looks a field up.
func (p path) parts() []fieldpath.Part {
	out := make([]fieldpath.Part, len(p))
	for i, s := range p {
		out[i] = s.part
	}
	return out
}

func (p path) and(s step) path { return append(slices.Clip(p), s) }

func (p path) begins(name string) bool { return len(p) > 0 && p[0].name == name }

// String returns the path as text, such as spec.ports[name=http].port.
func (p path) String() string {
	var out strings.Builder
	for _, s := range p {
		out.WriteString(s.text)
	}
	return strings.TrimPrefix(out.String(), ".")
}
