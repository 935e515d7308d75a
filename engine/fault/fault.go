package fault

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/token"
)

// A Code says what kind of fault one is: what may be done about it, whatever its message
// says.
type Code int

// The codes.
const (
	// Invalid is what can never become right as it stands: a conflict, a bound, a type, an
	// operation that fails, a rule that is broken.
	Invalid Code = iota
	// Incomplete is what cannot be said yet: it waits for a value.
	Incomplete
	// Unset is a field that is required, and that nothing sets.
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
	File string
	Line int
	// Use is where what is written there is used, as "file:line", if it is a template or
	// another shared field.
	Use string
}

// IsZero reports whether there is no position.
func (p Position) IsZero() bool { return p == Position{} }

// String returns "file:line", and where that is used behind it, or "" for no position.
func (p Position) String() string {
	switch {
	case p.File == "":
		return ""
	case p.Use != "":
		return fmt.Sprintf("%s:%d, used at %s", p.File, p.Line, p.Use)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Behind returns a position in brackets, to be put behind a text.
func (p Position) Behind() string {
	if p.File == "" {
		return ""
	}
	return " (" + p.String() + ")"
}

// IsContract reports whether a position is in one of the engine's own files, which an author
// does not have.
func (p Position) IsContract() bool {
	return strings.Contains(p.File, "schemas/operator/") || strings.Contains(p.File, "schemas/k8s/") || strings.Contains(p.File, "schemas/health/")
}

// Compare orders positions by file and line.
func Compare(a, b Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

// An Origin is a piece of text, as exactly as CUE knows it.
type Origin struct {
	File         string
	Line, Column int
}

// OriginOf returns a place in the text as an origin; its zero value is none.
func OriginOf(pos token.Pos) Origin {
	if !pos.IsValid() {
		return Origin{}
	}
	p := pos.Position()
	return Origin{p.Filename, p.Line, p.Column}
}

// A Fault is something that is wrong with a package, or with a value that was
// given to one.
type Fault struct {
	// Code is what kind of fault it is.
	Code Code
	// Position is where it is wrong; it is empty for a value that comes from a
	// custom resource and breaks no line of the package.
	Position Position
	// Path is the field that is wrong, such as components.web.objects.service.
	Path string
	// Message says what is wrong.
	Message string
	// Hint says what to write instead; it may be empty.
	Hint string
	// Name is the name that means nothing where it stands, if that is what is wrong. It is for
	// a hint, and nothing else.
	Name string
	// Origin is where CUE stopped, if it says so. It tells which reference leads nowhere, and
	// is shown to nobody.
	Origin Origin
}

// Error returns the fault on one line: position, path, message, where it is used, and
// hint. Editors and terminals follow a line that begins with file:line.
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

// says reports whether another fault says the same. Two that wait may wait for different
// things in the same line.
func (f Fault) says(o Fault) bool {
	if f.Code != Incomplete {
		o.Origin = f.Origin
	}
	return f == o
}

// Located returns path and message with the position behind them.
func (f Fault) Located() string { return f.Text() + f.Position.Behind() }

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

// Sorted returns the faults by position, path, message and hint, without their origins. Faults
// that read alike are one, because a person cannot tell them apart: the one with the lowest code
// is returned, as only Invalid can never become right.
func (fs Faults) Sorted() Faults {
	out := slices.Clone(fs)
	for i := range out {
		out[i].Origin = Origin{}
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
