package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// A Position is a place in a package's files.
type Position struct {
	File string
	Line int
	// Use is where what is written there is used, as "file:line", if it is a template or
	// another shared field.
	Use string
}

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

// PositionOf returns where a value is written by the author, or at all.
func PositionOf(v cue.Value) Position {
	if at := authored(v); len(at) > 0 {
		return at[0]
	}
	return positionAt(v.Pos())
}

// A Fault is something that is wrong with a package, or with a value that was
// given to one.
type Fault struct {
	// Position is where it is wrong; it is empty for a value that comes from a
	// custom resource and breaks no line of the package.
	Position Position
	// Path is the field that is wrong, such as components.web.objects.service.
	Path string
	// Message says what is wrong.
	Message string
	// Hint says what to write instead; it may be empty.
	Hint string
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

// Sorted returns the faults by position, path and message, each once.
func (fs Faults) Sorted() Faults {
	out := slices.Clone(fs)
	slices.SortStableFunc(out, func(a, b Fault) int {
		return cmp.Or(comparePositions(a.Position, b.Position), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(out)
}

// OrNil returns the faults as an error, or nil when there are none.
func (fs Faults) OrNil() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}
