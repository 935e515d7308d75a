package status

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of a status: whatever there is to say, the API server has to take it,
// and a person to read it.
const (
	// MaxMessage is how long one message is at most, in bytes.
	MaxMessage = 2048
	// minMessage is what is left to each of very many components.
	minMessage = 128
	// maxMessages is what the messages of all components take together, unless
	// minMessage for each is more.
	maxMessages = 64 << 10
	// maxListed is how many things a message lists.
	maxListed = 10
)

// cut stands for what was left out of a text.
const cut = " ... "

// Shorten returns a text of limit bytes at most. What is left out is in the middle:
// messages begin with what they are about, and end with the cause and its place.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	left := limit - len(cut)
	head, tail := left*2/3, len(text)-(left-left*2/3)
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + cut + text[tail:]
}

// List returns some texts as one: the first few, and how many more there are.
func List(texts []string) string {
	if more := len(texts) - maxListed; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(texts[:maxListed], "; "), more)
	}
	return strings.Join(texts, "; ")
}

// messageLimit returns how long the message of each of some components may be.
func messageLimit(components int) int {
	return min(MaxMessage, max(minMessage, maxMessages/max(1, components)))
}
