package fault

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
)

// The messages that several packages use.
const (
	// UnsetMessage is the message about a required field that nothing sets.
	UnsetMessage = "required, but not set"
	// UnknownFieldMessage is the message about a field that a closed struct does not have.
	UnknownFieldMessage = "unknown field"
	// InvalidMessage is how the message about an invalid value begins.
	InvalidMessage = "invalid value"
)

// The formats of the errors of CUE that are reworded for people. They only decide the words of a
// fault; its code comes from classify.
const (
	emptyDisjunction    = "%d errors in empty disjunction:"
	conflictingValues   = "conflicting values %s and %s"
	mismatchedTypes     = "conflicting values %s and %s (mismatched types %s and %s)"
	requiredField       = "field is required but not present"
	incompleteValue     = "incomplete value %v"
	notAllowed          = "field not allowed"
	noReference         = "reference %q not found"
	importFailed        = "import failed"
	failedInterpolation = "invalid interpolation"
	listLengths         = "incompatible list lengths (%d and %d)"
)

// Wording returns the message of an error of CUE. Only tests replace it: they reword all errors
// and check that the engine decides the same.
var Wording = func(e errors.Error) (format string, args []any) { return e.Msg() }

// FromCUE returns the faults that a CUE error stands for, or none for nil, without the noise of
// disjunctions: for `int & <=100 | *3` and 500 CUE reports the failed default as well as
// the bound, and only the bound helps.
//
// The error is of validating or reading v, or a part of it. Without a v, as for an error
// of the parser, the code of all faults is Invalid.
func FromCUE(err error, v cue.Value) Faults {
	if err == nil {
		return nil
	}
	var paths []string
	groups := map[string][]errors.Error{}
	for _, e := range errors.Errors(err) {
		path := pathOf(e)
		if _, seen := groups[path]; !seen {
			paths = append(paths, path)
		}
		groups[path] = append(groups[path], e)
	}
	for _, path := range paths {
		moveToEntries(path, groups)
	}
	var out Faults
	for _, path := range paths {
		code := classify(v, path, err)
		if len(groups[path]) == 0 {
			continue // it is said elsewhere
		}
		for _, f := range faultsAt(path, groups) {
			f.Code = code
			if !slices.ContainsFunc(out, f.says) {
				out = append(out, f)
			}
		}
	}
	return out
}

// faultsAt returns the faults that the errors of one field stand for: none, if the fields below say more.
func faultsAt(path string, groups map[string][]errors.Error) Faults {
	errs := groups[path]
	here := slices.ContainsFunc(errs, isDisjunction)
	n := noise{
		disjunct:  here || inDisjunction(path, groups),
		bounded:   slices.ContainsFunc(errs, func(e errors.Error) bool { return strings.HasPrefix(formatOf(e), InvalidMessage) }),
		explained: here && isAbove(path, groups),
		alone:     len(errs) == 1,
	}
	if n.disjunct && !n.bounded {
		if f, ok := oneOf(path, errs); ok {
			return Faults{f}
		}
	}
	var out Faults
	for _, e := range errs {
		if !n.has(formatOf(e)) {
			out = append(out, faultOf(path, e))
		}
	}
	if len(out) == 0 && !n.explained {
		out = append(out, faultOf(path, errs[0])) // an error is never nothing
	}
	return out
}

// moveToEntries moves what is said of a map to its entries. Where a map has a default, CUE says at the map which type an entry must have,
// and at the entry only that it is not that of the default. It says that of each entry, whether its type is right or not.
func moveToEntries(path string, groups map[string][]errors.Error) {
	if !slices.ContainsFunc(groups[path], isDisjunction) {
		return
	}
	moved := false
	groups[path] = slices.DeleteFunc(groups[path], func(e errors.Error) bool {
		at := e.InputPositions()
		if _, is := conflictOf(e); !is || len(at) == 0 || !at[0].IsValid() {
			return false
		}
		entry, found := entryAt(at[0], path, groups)
		if found {
			groups[entry], moved = append(groups[entry], e), true
		}
		return found
	})
	for below, errs := range groups {
		if moved && isBelow(below, path) {
			groups[below] = slices.DeleteFunc(errs, func(e errors.Error) bool { return formatOf(e) == notAllowed })
		}
	}
}

// entryAt returns the field below a path that has errors and whose value is at a place: an error names the value, or the label before
// it.
func entryAt(at token.Pos, path string, groups map[string][]errors.Error) (entry string, found bool) {
	closest := -1
	for _, below := range slices.Sorted(maps.Keys(groups)) {
		if !isBelow(below, path) {
			continue
		}
		for _, e := range groups[below] {
			for _, pos := range e.InputPositions() {
				if PositionAt(pos) == PositionAt(at) && pos.Offset() <= at.Offset() && pos.Offset() > closest {
					entry, found, closest = below, true, pos.Offset()
				}
			}
		}
	}
	return entry, found
}

// noise is what decides which errors of a field say nothing.
type noise struct {
	// disjunct is true for a field of which no alternative fits, and for those below it.
	disjunct bool
	// bounded is true if an error names the bound, explained if the fields below say more, and alone if there is no other error.
	bounded, explained, alone bool
}

// has reports whether an error of a format says nothing.
func (n noise) has(format string) bool {
	switch format {
	case emptyDisjunction:
		return n.explained || !n.alone
	case listLengths: // most often those of an empty default
		return n.explained || n.disjunct && n.bounded
	case conflictingValues, mismatchedTypes, notAllowed:
		return n.disjunct && n.bounded
	}
	return false
}

func isDisjunction(e errors.Error) bool { return formatOf(e) == emptyDisjunction }

// inDisjunction reports whether a field is below one of which no alternative fits: what is said of it may be about
// any of them.
func inDisjunction(path string, groups map[string][]errors.Error) bool {
	for above, errs := range groups {
		if isBelow(path, above) && slices.ContainsFunc(errs, isDisjunction) {
			return true
		}
	}
	return false
}

// isAbove reports whether there are errors below a field.
func isAbove(path string, groups map[string][]errors.Error) bool {
	for below := range groups {
		if isBelow(below, path) {
			return true
		}
	}
	return false
}

// isBelow reports whether a path is below another one.
func isBelow(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && rest != "" && (above == "" || rest[0] == '.' || rest[0] == '[')
}

func faultOf(path string, e errors.Error) Fault {
	f := Fault{Position: positionOf(e), Path: path, Message: messageOf(e), Hint: hintFor(e), Origin: originOf(e)}
	if format, args := Wording(e); format == noReference && len(args) == 1 {
		f.Name = fmt.Sprint(args[0])
	}
	return f
}

// oneOf returns the fault of a value that matches none of several alternatives, with all of them.
func oneOf(path string, errs []errors.Error) (Fault, bool) {
	var found []conflict
	var at Position
	for _, e := range errs {
		if c, ok := conflictOf(e); ok {
			found = append(found, c)
			at = cmp.Or(at, positionOf(e))
		}
	}
	if len(found) < 2 {
		return Fault{}, false
	}
	// The value is the one that is in every conflict.
	actual := found[0][0]
	if !slices.ContainsFunc(found[1][:], func(s side) bool { return s == actual }) {
		actual = found[0][1]
	}
	var wanted []side
	for _, c := range found {
		other := c[0]
		if other == actual {
			other = c[1]
		}
		wanted = append(wanted, other)
	}
	var texts []string
	for _, w := range wanted {
		// A default says nothing that its type does not.
		ofItsType := w.text != w.kind && w.kind != "" && slices.Contains(wanted, side{w.kind, w.kind})
		if !ofItsType && !slices.Contains(texts, w.text) {
			texts = append(texts, w.text)
		}
	}
	return Fault{Position: at, Path: path, Message: fmt.Sprintf("invalid value %s (must be %s)", actual.text, alternatives(texts))}, true
}

// A side is one of the two values of a conflict; the kind is known only if they
// differ in it.
type side struct{ text, kind string }

type conflict [2]side

func conflictOf(e errors.Error) (conflict, bool) {
	format, args := Wording(e)
	text := make([]string, len(args))
	for i, a := range args {
		text[i] = fmt.Sprint(a)
	}
	switch {
	case format == conflictingValues && len(args) == 2:
		return conflict{{text[0], ""}, {text[1], ""}}, true
	case format == mismatchedTypes && len(args) == 4:
		return conflict{{text[0], text[2]}, {text[1], text[3]}}, true
	}
	return conflict{}, false
}

func alternatives(texts []string) string {
	if last := len(texts) - 1; last > 0 {
		return strings.Join(texts[:last], ", ") + " or " + texts[last]
	}
	return strings.Join(texts, "")
}

func formatOf(e errors.Error) string {
	format, _ := Wording(e)
	return format
}

func messageOf(e errors.Error) string {
	format, args := Wording(e)
	switch format {
	case requiredField:
		return UnsetMessage
	case incompleteValue:
		if fmt.Sprint(args...) == "_" {
			return UnsetMessage
		}
		return fmt.Sprintf(UnsetMessage+" (must be %v)", args...)
	case notAllowed:
		return UnknownFieldMessage
	case mismatchedTypes:
		if c, ok := conflictOf(e); ok && c[0].isType() != c[1].isType() {
			value, want := c[0], c[1]
			if value.isType() {
				value, want = want, value
			}
			return fmt.Sprintf("invalid value %s (must be %s)", value.text, want.kind)
		}
	}
	text := strings.TrimSuffix(strings.TrimSpace(fmt.Sprintf(format, args...)), ":")
	var cause errors.Error
	found := errors.As(errors.Unwrap(e), &cause)
	if found && text == importFailed {
		return messageOf(cause) // once is enough, however deep it is
	}
	if found && text == failedInterpolation {
		return messageOf(cause) // CUE says it once for each text around what is missing
	}
	if found && !strings.Contains(text, messageOf(cause)) {
		return text + ": " + messageOf(cause)
	}
	return text
}

// isType reports whether a side of a conflict is a type instead of a value.
func (s side) isType() bool {
	if s.text == s.kind {
		return true
	}
	switch s.text {
	case "", "{}", "[]", "true", "false", "null":
		return false
	}
	// A name, as in int32, stands for a type: strings and bytes are quoted.
	first := rune(s.text[0])
	return strings.ContainsRune("{[<>=!#_", first) || unicode.IsLetter(first)
}

// hintFor returns what to write instead, if the error alone tells.
func hintFor(e errors.Error) string {
	format, args := Wording(e)
	if format != noReference || len(args) != 1 {
		return ""
	}
	switch name := fmt.Sprint(args[0]); name {
	case "cr", "live", "inputs", "components":
		return fmt.Sprintf("write %s: _ at the root of the package: only fields that it writes itself are in scope", name)
	}
	return ""
}

// pathOf returns the path of an error in CUE's notation.
func pathOf(e errors.Error) string {
	var b strings.Builder
	for _, label := range e.Path() {
		if _, err := strconv.Atoi(label); err == nil {
			b.WriteString("[" + label + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteString(".")
		}
		b.WriteString(label)
	}
	return b.String()
}

// positionOf returns the position of an error in the author's own files, or any at
// all: "conflicting values" names the contract's line as well, and that is rarely
// the line to change. Of two values in different files, the other one's place is its use.
func positionOf(e errors.Error) Position {
	var first, own Position
	// Not errors.Positions, which sorts: CUE names the most specific one first.
	for _, pos := range append([]token.Pos{e.Position()}, e.InputPositions()...) {
		p := PositionAt(pos)
		first = cmp.Or(first, p)
		switch {
		case p.File == "" || p.IsContract() || p.File == own.File:
		case own.IsZero():
			own = p
		case formatOf(e) == conflictingValues:
			own.Use = p.String()
			return own
		}
	}
	return cmp.Or(own, first)
}

// originOf returns the place at which CUE stopped: for an interpolation, the part that failed.
func originOf(e errors.Error) TokenPosition {
	at := e.Position()
	var cause errors.Error
	for inner := errors.Unwrap(e); inner != nil && errors.As(inner, &cause); inner = errors.Unwrap(cause) {
		if cause.Position().IsValid() {
			at = cause.Position()
		}
	}
	return TokenPositionOf(at)
}

// PositionAt returns a place in the text as a position, or none for what is in no file.
func PositionAt(pos token.Pos) Position {
	if !pos.IsValid() {
		return Position{}
	}
	p := pos.Position()
	return Position{File: p.Filename, Line: p.Line}
}
