package status

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of messages. The API server has to accept the status, and a person has to read it.
const (
	// MaxMessage is how long one message is at most, in bytes.
	MaxMessage = 2048
	// minMessage is the limit of a message if there are very many components.
	minMessage = 128
	// maxMessages is how long the messages of all components are together, unless minMessage for
	// each is more.
	maxMessages = 64 << 10
	// maxListed is how many things a message lists.
	maxListed = 10
)

// cut stands for what was left out of a text.
const cut = " ... "

// Shorten returns a text of at most limit bytes. It leaves out the middle: messages begin with their
// subject, and end with the cause and its place.
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

// List joins texts. Of many it lists the first few and counts the rest.
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
