package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names, messages and values come from files, from packages and from a cluster, and whoever
// wrote them is not the one who reads them in a terminal. So all that the commands print goes
// through a visibleWriter.

// A visibleWriter escapes what a terminal acts upon instead of showing it, as JSON does, so that
// JSON and quoted YAML keep their values. New lines and tabs, and the colours of an ink, stay.
type visibleWriter struct{ w io.Writer }

// Write writes text, whose characters have to be whole.
func (v visibleWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(v.w, visible(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// behind returns what a writer writes to in the end.
func behind(w io.Writer) io.Writer {
	if v, ok := w.(visibleWriter); ok {
		return v.w
	}
	return w
}

// visible returns a text with what is hidden in it escaped.
func visible(text string) string {
	if !strings.ContainsFunc(text, hidden) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, escape+seal); ok {
			b.WriteString(escape)
			text = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\ufffd`)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// hidden reports whether a terminal acts upon a character: control characters, those that turn
// the direction of the text round, and other ends of a line.
func hidden(r rune) bool {
	const lineSeparator, paragraphSeparator = '\u2028', '\u2029'
	switch r {
	case '\n', '\t':
		return false
	case lineSeparator, paragraphSeparator:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// printLinef prints one line, whatever is in what it says: a name with a line of its own in it
// must not look like one of the command.
func printLinef(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, oneLineOf(fmt.Sprintf(format, args...)))
}

// oneLineOf returns a text whose ends of lines are escaped.
func oneLineOf(text string) string { return strings.ReplaceAll(text, "\n", `\n`) }
