package redact

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable returns a text in which everything but visible characters is escaped, because a
// terminal acts on some of the others.
func Printable(text string) string {
	if !strings.ContainsFunc(text, invisible) && utf8.ValidString(text) {
		return text
	}
	quoted := strconv.QuoteToGraphic(text)
	return strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), `\\`, `\`)
}

func invisible(r rune) bool { return r != ' ' && !strconv.IsGraphic(r) }

// OneLine returns a text on one line, with single spaces between its words.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
