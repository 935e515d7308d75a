package diff

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/redact"
)

// mask replaces a value that is not shown.
const mask = redact.Mask

// A Mask masks the values of Secrets wherever else they occur. It is stricter than a
// [redact.Redactor], which leaves common words and short numbers in messages: a diff has to mask
// them too. The zero Mask knows no Secret. It is safe for concurrent use.
type Mask struct {
	mu    sync.Mutex
	known map[string]bool
	// redactor also finds parts of the values: lines, and fields of JSON.
	redactor *redact.Redactor
	replacer *strings.Replacer
}

// minLength is the minimum length of a value that is masked: shorter ones occur everywhere.
const minLength = 4

// Learn adds the values of Secrets, verbatim and in base64. It ignores other objects, and nil.
func (m *Mask) Learn(objects ...*unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range objects {
		if !isSecret(u) {
			continue
		}
		if m.redactor == nil {
			m.redactor = redact.New()
		}
		m.redactor.Add(u.Object)
		for _, v := range values(u, "data") {
			m.add(v)
			if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
				m.add(string(plain))
			}
		}
		for _, v := range values(u, "stringData") {
			m.add(v)
			m.add(base64.StdEncoding.EncodeToString([]byte(v)))
		}
	}
}

func (m *Mask) add(value string) {
	for _, v := range []string{value, strings.TrimSpace(value)} {
		if len(v) < minLength || m.known[v] {
			continue
		}
		if m.known == nil {
			m.known = map[string]bool{}
		}
		m.known[v], m.replacer = true, nil
	}
}

func isSecret(u *unstructured.Unstructured) bool {
	return u != nil && u.GetKind() == "Secret" && u.GetAPIVersion() == "v1"
}

func values(u *unstructured.Unstructured, field string) []string {
	var out []string
	all, _, _ := unstructured.NestedMap(u.Object, field)
	for _, v := range all {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// Text returns a text without the values of Secrets, and without characters that a terminal would
// act on.
func (m *Mask) Text(text string) string { return Printable(m.hide(text)) }

// hide returns a text without the values of Secrets.
func (m *Mask) hide(text string) string {
	if m == nil {
		return text
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) == 0 {
		return text
	}
	if m.replacer == nil {
		var pairs []string
		longestFirst := func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }
		for _, v := range slices.SortedFunc(maps.Keys(m.known), longestFirst) {
			pairs = append(pairs, v, mask)
		}
		m.replacer = strings.NewReplacer(pairs...)
	}
	return m.redactor.Text(m.replacer.Replace(text))
}

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
	a, b = m.hide(a), m.hide(b)
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
		return excerpt(m.hide(v), 0)
	}
	text := Printable(encode(m.masked(value)))
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}

// masked returns a value without the values of Secrets.
func (m *Mask) masked(value any) any {
	switch v := value.(type) {
	case string:
		return m.hide(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = m.masked(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[m.hide(k)] = m.masked(item)
		}
		return out
	}
	return value
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
	return Printable(encode(value))
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
