package diff

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/object"
	"operetta.dev/engine/redact"
)

// mask replaces a value that is not shown.
const mask = redact.Mask

// A Mask masks the values of Secrets wherever else they occur, including common words and short
// numbers. The zero Mask knows no Secret. It is safe for concurrent use.
type Mask struct {
	once  sync.Once
	known *redact.Redactor
}

// redactor returns the Redactor of the mask, or nil for a nil mask, which redacts nothing.
func (m *Mask) redactor() *redact.Redactor {
	if m == nil {
		return nil
	}
	m.once.Do(func() { m.known = redact.NewStrict() })
	return m.known
}

// Learn adds the values of Secrets. It ignores other objects, and nil.
func (m *Mask) Learn(objects ...*unstructured.Unstructured) {
	for _, u := range objects {
		if mayBeSecret(u) {
			m.redactor().Add(u.Object)
		}
	}
}

func mayBeSecret(u *unstructured.Unstructured) bool {
	return u != nil && object.MayBeSecret(u.GetKind())
}

// Text returns a text without the values of Secrets, and without characters that a terminal would
// act on.
func (m *Mask) Text(text string) string { return redact.Printable(m.redactor().Text(text)) }

const (
	// maxShown is the maximum number of characters of a value that are shown.
	maxShown = 80
	// maxLead is how many of them may precede the first difference.
	maxLead = 20
)

// pair returns two values as text. Long texts begin shortly before the first difference. A nil is
// "".
func (m *Mask) pair(before, after any) (string, string) {
	a, isTextA := before.(string)
	b, isTextB := after.(string)
	if !isTextA || !isTextB {
		return m.one(before), m.one(after)
	}
	a, b = m.redactor().Text(a), m.redactor().Text(b)
	if a == b {
		return mask, mask + " (another)"
	}
	from := 0
	if max(len(a), len(b)) > maxShown {
		from = max(0, common(a, b)-maxLead)
	}
	return excerpt(a, from), excerpt(b, from)
}

// one returns a value as text. A nil is "".
func (m *Mask) one(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return excerpt(m.redactor().Text(v), 0)
	}
	text := redact.Printable(encode(m.redactor().Data(value)))
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}

// common returns the length of the common prefix of two texts, in bytes.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// excerpt returns a text in quotes, from about a byte on and truncated.
func excerpt(text string, from int) string {
	for from > 0 && from < len(text) && !utf8.RuneStart(text[from]) {
		from--
	}
	from = min(from, len(text))
	out, shown := "", text[from:]
	if from > 0 {
		out = "…"
	}
	if end := cut(shown); end < len(shown) {
		return out + strconv.QuoteToGraphic(shown[:end]) + "… (" + strconv.Itoa(len(text)) + " bytes)"
	}
	return out + strconv.QuoteToGraphic(shown)
}

// cut returns the index at which a text is truncated.
func cut(text string) int {
	n := 0
	for i := range text {
		if n == maxShown {
			return i
		}
		n++
	}
	return len(text)
}

// show returns the key of an item as part of a path.
func show(value any) string {
	if text, ok := value.(string); ok && plain.MatchString(text) {
		return text
	}
	return redact.Printable(encode(value))
}

// encode returns a value as JSON.
func encode(value any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "(not shown: " + err.Error() + ")"
	}
	return strings.TrimSpace(out.String())
}
