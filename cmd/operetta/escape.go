package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Names, messages and values come from files, packages and clusters, and may contain terminal escape
// sequences that attack the person who reads the output. So all output of the commands goes through
// an escapingWriter.

// An escapingWriter replaces the characters that a terminal acts upon by JSON escapes, so that JSON
// and quoted YAML keep their values. It keeps newlines, tabs and the colours of newPalette.
type escapingWriter struct{ w io.Writer }

// Write writes text. A character must not be split over two calls.
func (v escapingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(v.w, escapeControls(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unwrapWriter returns the writer below an escapingWriter, or the writer itself.
func unwrapWriter(w io.Writer) io.Writer {
	if v, ok := w.(escapingWriter); ok {
		return v.w
	}
	return w
}

// terminal returns the terminal that a writer writes to, and whether there is one.
func terminal(w io.Writer) (*os.File, bool) {
	file, is := unwrapWriter(w).(*os.File)
	return file, is && term.IsTerminal(int(file.Fd()))
}

// escapeControls returns a text with the characters escaped that a terminal acts upon, except for
// the escapes of markTrusted.
func escapeControls(text string) string {
	if !strings.ContainsFunc(text, actsOnTerminal) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, escape+trustedMark); ok {
			b.WriteString(escape)
			text = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\ufffd`)
		case actsOnTerminal(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// actsOnTerminal reports whether a terminal acts upon a character instead of showing it: control
// characters, characters that change the direction of text, and line and paragraph separators.
func actsOnTerminal(r rune) bool {
	const lineSeparator, paragraphSeparator = '\u2028', '\u2029'
	switch r {
	case '\n', '\t':
		return false
	case lineSeparator, paragraphSeparator:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// printLinef prints exactly one line. It escapes newlines in the arguments, because a name that
// contains one could otherwise forge a line of output.
func printLinef(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, escapeNewlines(fmt.Sprintf(format, args...)))
}

// escapeNewlines returns a text with its newlines escaped.
func escapeNewlines(text string) string { return strings.ReplaceAll(text, "\n", `\n`) }
