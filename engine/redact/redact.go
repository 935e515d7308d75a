// Package redact removes the values of Secrets from text and data: everything that leaves
// the engine for a status, an event, a log or a terminal passes through a Redactor that
// knows the Secrets that a reconcile has read.
//
// It is the second of two safeguards. The first is redact_by_comparison.go in package program,
// which shows a CUE message only if it does not depend on a Secret, however the value was
// transformed. This one is for text from elsewhere, such as an API server that quotes a
// rejected object, and for values that an author copies on purpose. It finds values verbatim,
// encoded, escaped and truncated, but not values that were transformed or split.
//
// Some values are not redacted: those shorter than four bytes, numbers of up to five digits,
// common words, and names that messages have to contain anyway. Where the reader knows which
// word a text must contain, the gap would reveal it. This leaves an oracle: a user who
// chooses the names of objects, and sees whether a message is redacted, learns whether a word
// of such a name is a value of a Secret. Each word in a name is one guess, a few dozen per
// write.
//
//	r := redact.New()
//	r.Add(secret)
//	message = r.Text(message)
package redact

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"operetta.dev/engine/object"
)

// Mask replaces a value of a Secret.
const Mask = "***"

// The lengths of the values that are redacted.
const (
	// minLength is the minimum length of a value.
	minLength = 4
	// minSubstringLength is the length from which on a value is also redacted within words,
	// and in upper or lower case.
	minSubstringLength = 8
	// minDigits is the minimum length of a number: with up to five digits, it may be a port, a
	// line or a count.
	minDigits = 6
	// maxNameLength is the maximum length of a value that may be a name, or a part of one.
	maxNameLength = 63
	// maxSplitLength is the maximum length of a value whose lines and fields are redacted too.
	maxSplitLength = 64 << 10
)

// contentFields are the fields of a Secret that hold its content.
var contentFields = []string{"data", "stringData"}

// saltAnnotation is the annotation with the salt of a Secret's digests.
const saltAnnotation = "operetta.dev/salt"

// appliedAnnotation is the annotation with the digest of what was applied: its key is the salt, which dry runs do not choose.
const appliedAnnotation = "operetta.dev/applied"

// lastAppliedAnnotation is the annotation in which kubectl keeps the whole object.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// A Redactor knows the Secrets that one reconcile has read. It is safe for concurrent use. A nil
// Redactor redacts nothing.
type Redactor struct {
	mu sync.RWMutex
	// values are the decoded values of the Secrets.
	values map[string]bool
	// names are public texts.
	names map[string]bool
	// texts are the ways in which the values may be written, without those that are public. fresh are values, and freshNames
	// names, that are not in it yet.
	texts      map[string]bool
	fresh      []string
	freshNames []string
	// patterns are of the texts; nil until they are needed.
	patterns *patterns
	// strict is true if all values of at least four bytes are redacted, wherever they occur.
	strict bool
}

// New returns a Redactor that knows no Secret.
func New() *Redactor {
	return &Redactor{values: map[string]bool{}, names: map[string]bool{}, texts: map[string]bool{}}
}

// NewStrict returns a Redactor that knows no Secret, and that also redacts common words, numbers and
// parts of words. It is for output that need not be readable where it repeats such a value.
func NewStrict() *Redactor {
	r := New()
	r.strict = true
	return r
}

// Add adds the values of an object if it is a Secret.
func (r *Redactor) Add(content map[string]any) {
	if r == nil || !object.MayBeSecretIn(content) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addContent(content)
	meta, _ := content["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if key, ok := annotations[saltAnnotation].(string); ok {
		r.add(key, false)
	}
	text, _ := annotations[lastAppliedAnnotation].(string)
	var before map[string]any
	if json.Unmarshal([]byte(text), &before) == nil {
		r.addContent(before)
	}
}

// MaskSecret replaces the values in an object by Mask if it is a Secret, also in the annotations that repeat or reveal
// them. The names of the values stay.
func MaskSecret(content map[string]any) {
	if !object.MayBeSecretIn(content) {
		return
	}
	for _, field := range contentFields {
		values, isMap := content[field].(map[string]any)
		if !isMap && content[field] != nil {
			content[field] = Mask
		}
		for name := range values {
			values[name] = Mask
		}
	}
	meta, _ := content["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for _, name := range []string{saltAnnotation, appliedAnnotation, lastAppliedAnnotation} {
		if _, has := annotations[name]; has {
			annotations[name] = Mask
		}
	}
}

// addContent adds the values of a Secret.
func (r *Redactor) addContent(secret map[string]any) {
	for _, field := range contentFields {
		content, _ := secret[field].(map[string]any)
		for _, v := range content {
			if text, ok := v.(string); ok {
				r.add(text, field == "data")
			}
		}
	}
}

// add adds one value, which is decoded first if it is encoded.
func (r *Redactor) add(text string, encoded bool) {
	if encoded {
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(plain)
		}
	}
	if len(text) >= minLength && !r.values[text] {
		r.values[text] = true
		r.fresh = append(r.fresh, text)
	}
}

// AllowNames adds public names, such as those of objects, which are not redacted.
func (r *Redactor) AllowNames(names ...string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if len(name) >= minLength && !r.names[name] {
			r.names[name] = true
			r.freshNames = append(r.freshNames, name)
		}
	}
}

// Text returns a text without the values of the Secrets.
func (r *Redactor) Text(text string) string {
	if r == nil || len(text) < minLength {
		return text
	}
	return r.allPatterns().redact(text)
}

// Data returns data with each of its strings redacted like Text. It does not modify its argument.
func (r *Redactor) Data(data any) any {
	if r == nil || r.allPatterns().empty() {
		return data
	}
	switch v := data.(type) {
	case string:
		return r.Text(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = r.Data(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[r.Text(k)] = r.Data(e)
		}
		return out
	}
	return data
}

// Error returns an error whose message is redacted like Text, and that is the same for errors.Is
// and errors.As.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	said := err.Error()
	text := r.Text(said)
	if text == said {
		return err
	}
	return &redactedError{text, err}
}

type redactedError struct {
	text  string
	cause error
}

// Error returns the redacted text.
func (e *redactedError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *redactedError) Unwrap() error { return e.cause }

// allPatterns returns the texts to redact.
func (r *Redactor) allPatterns() *patterns {
	r.mu.RLock()
	known, complete := r.patterns, len(r.fresh)+len(r.freshNames) == 0
	r.mu.RUnlock()
	if known != nil && complete {
		return known
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.update() || r.patterns == nil {
		r.patterns = newPatterns(r.texts, r.strict)
	}
	return r.patterns
}

// update adds what is fresh to the texts, and reports whether these are others now.
func (r *Redactor) update() bool {
	names := r.freshNames
	if len(r.fresh) > 0 {
		names = slices.Collect(maps.Keys(r.names))
	}
	changed := len(r.fresh) > 0
	for _, value := range r.fresh {
		for _, text := range waysToWrite(value) {
			if r.isSecret(text) {
				r.texts[text] = true
			}
		}
	}
	before := len(r.texts)
	if !r.strict {
		for _, name := range names {
			removePartsOfName(r.texts, name)
		}
	}
	r.fresh, r.freshNames = nil, nil
	return changed || len(r.texts) != before
}

// isSecret reports whether a text is redacted, unless it is a part of a name.
func (r *Redactor) isSecret(text string) bool {
	switch {
	case len(text) < minLength:
		return false
	case r.strict:
		return true
	}
	short := len(text) < minDigits && strings.Trim(text, "0123456789") == ""
	return !short && !commonWords[strings.ToLower(text)]
}

// removePartsOfName removes what cannot be redacted because it is a part of a name. A value that is only redacted as a whole
// word has to be a whole word of the name. Otherwise a user could choose a name of 250 characters, and guess that many values
// at once. It looks up the parts of the name: a Secret may have thousands of values, and a resource thousands of names.
func removePartsOfName(texts map[string]bool, name string) {
	for from := range len(name) {
		for end := from + minLength; end <= min(len(name), from+maxNameLength); end++ {
			if end-from >= minSubstringLength || isWordBoundary(name, from-1) && isWordBoundary(name, end) {
				delete(texts, name[from:end])
			}
		}
	}
}
