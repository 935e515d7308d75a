package fault

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/token"
)

// A Code is the kind of a fault. The engine decides by it, and never by the message.
type Code int

// The codes.
const (
	// Invalid can never become right without a change: a conflict, a bound, a type, an
	// operation that fails, a broken rule.
	Invalid Code = iota
	// Incomplete waits for a value that does not exist yet.
	Incomplete
	// Unset is a required field that nothing sets.
	Unset
	// UnknownField is a field that a closed struct does not have.
	UnknownField
)

// String returns the code as it is called in Go.
func (c Code) String() string {
	return [...]string{"Invalid", "Incomplete", "Unset", "UnknownField"}[c]
}

// A Position is a place in a package's files.
type Position struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Use is the place that uses a template or another shared field at the position, as
	// "file:line", or "".
	Use string `json:"usedAt,omitempty"`
}

// IsZero reports whether there is no position.
func (p Position) IsZero() bool { return p == Position{} }

// String returns "file:line" and the place that uses it, or "" for no position.
func (p Position) String() string {
	switch {
	case p.File == "":
		return ""
	case p.Use != "":
		return fmt.Sprintf("%s:%d, used at %s", p.File, p.Line, p.Use)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// InBrackets returns a position in brackets, to be put behind a text.
func (p Position) InBrackets() string {
	if p.File == "" {
		return ""
	}
	return " (" + p.String() + ")"
}

// IsContract reports whether a position is in one of the engine's own files, which authors cannot
// edit.
func (p Position) IsContract() bool {
	return strings.Contains(p.File, "schemas/operator/") || strings.Contains(p.File, "schemas/k8s/") || strings.Contains(p.File, "schemas/health/")
}

// Compare orders positions by file and line.
func Compare(a, b Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

// A TokenPosition is a place in the text with its column.
type TokenPosition struct {
	File         string
	Line, Column int
}

// TokenPositionOf returns a place in the text as an origin; its zero value is none.
func TokenPositionOf(pos token.Pos) TokenPosition {
	if !pos.IsValid() {
		return TokenPosition{}
	}
	p := pos.Position()
	return TokenPosition{p.Filename, p.Line, p.Column}
}

// A Fault is something that is wrong with a package, or with a value that was
// given to one.
type Fault struct {
	// Code is what kind of fault it is.
	Code Code
	// Position is the line that is wrong; it is empty for a value that comes from a custom
	// resource and contradicts no line of the package.
	Position Position
	// Path is the field that is wrong, such as components.web.objects.service.
	Path string
	// Message says what is wrong.
	Message string
	// Hint says what to write instead; it may be empty.
	Hint string
	// Name is the name that is not in scope, if that is what is wrong. It is used for a hint
	// only.
	Name string
	// Origin is the place at which CUE stopped, if known. It tells which reference leads
	// nowhere, and is not shown.
	Origin TokenPosition
}

// Error returns the fault on one line: position, path, message, the place that uses it, and
// hint. Editors and terminals link a line that begins with file:line.
func (f Fault) Error() string {
	var b strings.Builder
	at := f.Position
	at.Use = ""
	if p := at.String(); p != "" {
		b.WriteString(p + ": ")
	}
	b.WriteString(f.Text())
	if f.Position.Use != "" {
		b.WriteString(" (used at " + f.Position.Use + ")")
	}
	if f.Hint != "" {
		b.WriteString(" (" + f.Hint + ")")
	}
	return b.String()
}

// Text returns path and message, without position and hint.
func (f Fault) Text() string {
	if f.Path == "" || strings.HasPrefix(f.Message, f.Path) {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// says reports whether another fault is the same. Incomplete faults with different origins are
// not: they may wait for different fields in the same line.
func (f Fault) says(o Fault) bool {
	if f.Code != Incomplete {
		o.Origin = f.Origin
	}
	return f == o
}

// Located returns path and message with the position behind them.
func (f Fault) Located() string { return f.Text() + f.Position.InBrackets() }

// Faults are all that is wrong, in a fixed order. It is an error when not empty.
type Faults []Fault

// Error returns one fault a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted returns the faults by position, path, message and hint, without their origins. Faults with the same text are
// merged, because a person cannot tell them apart. The one with the lowest code is kept: only an Invalid fault can
// never become valid.
func (fs Faults) Sorted() Faults {
	out := slices.Clone(fs)
	for i := range out {
		out[i].Origin = TokenPosition{}
	}
	slices.SortFunc(out, func(a, b Fault) int {
		return cmp.Or(Compare(a.Position, b.Position), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message),
			cmp.Compare(a.Hint, b.Hint), cmp.Compare(a.Position.Use, b.Position.Use), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(out, func(a, b Fault) bool { return a.Error() == b.Error() })
}

// OrNil returns the faults as an error, or nil when there are none.
func (fs Faults) OrNil() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// SplitPath returns the names in a path in the notation of CUE, which quotes those that are not identifiers:
// spec, env and a.b of spec.env."a.b".
func SplitPath(path string) []string {
	var out []string
	var name strings.Builder
	quoted := false
	for _, r := range path {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '.' && !quoted:
			out = append(out, name.String())
			name.Reset()
		default:
			name.WriteRune(r)
		}
	}
	return append(out, name.String())
}
