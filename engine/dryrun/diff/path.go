package diff

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A path is the path of a field.
type path []step

// A step is one element of a path.
type step struct {
	name string // the name of a field, or ""
	text string // what it adds to the text of the path
}

var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (p path) field(name string) path {
	if plain.MatchString(name) {
		return p.and(step{name, "." + name})
	}
	return p.and(step{name, "[" + Printable(strconv.Quote(name)) + "]"})
}

func (p path) index(i int) path { return p.and(step{text: "[" + strconv.Itoa(i) + "]"}) }

func (p path) item(key, value string) path {
	return p.and(step{text: "[" + key + "=" + value + "]"})
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
