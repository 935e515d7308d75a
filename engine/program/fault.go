package program

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
)

// A Position is a place in a package's files.
type Position struct {
	File string
	Line int
}

// String returns "file:line", or "" for no position.
func (p Position) String() string {
	if p.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
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

// Error returns the fault on one line: position, path, message and hint.
func (f Fault) Error() string {
	var b strings.Builder
	if p := f.Position.String(); p != "" {
		b.WriteString(p + ": ")
	}
	b.WriteString(f.Text())
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

// OrNil returns the faults as an error, or nil when there are none.
func (fs Faults) OrNil() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// faultsOf returns the faults that a CUE error stands for, without the noise of
// disjunctions: for `int & <=100 | *3` and 500 CUE reports the failed default as
// well as the bound, and only the bound helps.
func faultsOf(err error) Faults {
	if err == nil {
		return nil
	}
	all := errors.Errors(err)
	informative := map[string]bool{}
	disjoint := map[string]bool{}
	for _, e := range all {
		path := pathOf(e)
		switch formatOf(e) {
		case emptyDisjunction:
			disjoint[path] = true
		case conflictingValues:
		default:
			informative[path] = true
		}
	}
	var out Faults
	for _, e := range all {
		path, format := pathOf(e), formatOf(e)
		if format == emptyDisjunction && len(all) > 1 {
			continue
		}
		if format == conflictingValues && disjoint[path] && informative[path] {
			continue
		}
		f := Fault{Position: positionOf(e), Path: path, Message: messageOf(e)}
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// The formats of the two errors that disjunctions add. They decide only which
// lines a person reads, never what the engine does.
const (
	emptyDisjunction  = "%d errors in empty disjunction:"
	conflictingValues = "conflicting values %s and %s"
)

func formatOf(e errors.Error) string {
	format, _ := e.Msg()
	return format
}

func messageOf(e errors.Error) string {
	format, args := e.Msg()
	return strings.TrimSuffix(strings.TrimSpace(fmt.Sprintf(format, args...)), ":")
}

func pathOf(e errors.Error) string {
	return strings.Join(e.Path(), ".")
}

// positionOf returns the first position of an error in the author's own files,
// or the first at all: "conflicting values" names the contract's line as well,
// and that is rarely the line to change.
func positionOf(e errors.Error) Position {
	var first Position
	for _, pos := range errors.Positions(e) {
		p := positionAt(pos)
		if first == (Position{}) {
			first = p
		}
		if p.File != "" && !strings.Contains(p.File, "schemas/operator/") {
			return p
		}
	}
	return first
}

func positionAt(pos token.Pos) Position {
	if !pos.IsValid() {
		return Position{}
	}
	p := pos.Position()
	return Position{File: p.Filename, Line: p.Line}
}
