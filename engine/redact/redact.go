// Package redact takes what Secrets hold out of text and data, by value: whatever
// leaves the engine for a status, an event, a log or a terminal goes through a
// Redactor that knows the Secrets in sight.
//
// It is the second of two guards. The first is in package program, which shows of what
// CUE says only what does not rest on a Secret, whatever became of the value on the
// way. This one is for what comes from elsewhere, such as an API server that quotes the
// object that it refuses, and for what an author copies on purpose. It finds values as
// they are, encoded, escaped and cut off; not ones that were changed or taken apart.
//
// Some values cannot be taken out, and are not: those shorter than four bytes, numbers
// of up to five digits, common words, and names that the engine has to say anyway. In
// a text that must have had that word, the gap would tell what it was. Who chooses names,
// and sees a message in which a value is taken out, learns whether it is one of them: a
// try for each word that they write into a name, which is one of a few dozen a write.
//
//	r := redact.New()
//	r.Add(secret)
//	message = r.Text(message)
package redact

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Mask takes the place of what a Secret holds.
const Mask = "***"

// The lengths at which values are looked for.
const (
	// shortest is how long a value is at least.
	shortest = 4
	// certain is from which length on a value is looked for within words as well, and
	// whatever the case of its letters.
	certain = 8
	// shortestNumber is how many digits a number has at least: up to five, it may be a
	// port, a line or a count.
	shortestNumber = 6
	// longestName is how long a value is at most that may be a name, or a part of one.
	longestName = 63
	// longestTaken is up to which length a value is taken apart into lines and fields.
	longestTaken = 64 << 10
)

// contentFields are the fields of a Secret that hold what is secret.
var contentFields = []string{"data", "stringData"}

// salt is the annotation with what the digests of a Secret are made with.
const salt = "operetta.dev/salt"

// lastApplied is where kubectl keeps the whole content of an object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// A Redactor knows the Secrets in sight of one reconcile. It is safe for concurrent
// use, and a nil one changes nothing.
type Redactor struct {
	mu sync.RWMutex
	// values are what was added, decoded where it was encoded, each once.
	values map[string]bool
	// names are texts that may be read by everybody.
	names map[string]bool
	// forms are what is looked for, the longest first; nil until it is asked for.
	forms []form
}

// New returns a Redactor that knows no Secret.
func New() *Redactor {
	return &Redactor{values: map[string]bool{}, names: map[string]bool{}}
}

// Add makes the content of an object known if it is a Secret.
func (r *Redactor) Add(object map[string]any) {
	if r == nil || object["kind"] != "Secret" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addContent(object)
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if key, ok := annotations[salt].(string); ok {
		r.add(key, false)
	}
	text, _ := annotations[lastApplied].(string)
	var before map[string]any
	if json.Unmarshal([]byte(text), &before) == nil {
		r.addContent(before)
	}
}

// addContent makes the content of a Secret known.
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

// add makes one value known.
func (r *Redactor) add(text string, encoded bool) {
	if encoded {
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(plain)
		}
	}
	if len(text) >= shortest && !r.values[text] {
		r.values[text] = true
		r.forms = nil
	}
}

// Name makes names known that may be read by everybody, such as those of objects.
func (r *Redactor) Name(names ...string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if len(name) >= shortest && !r.names[name] {
			r.names[name] = true
			r.forms = nil
		}
	}
}

// Text returns a text without what the Secrets hold.
func (r *Redactor) Text(text string) string {
	if r == nil || len(text) < shortest {
		return text
	}
	return replace(text, r.known())
}

// Data returns data as Text returns each of its texts. It copies what it changes.
func (r *Redactor) Data(data any) any {
	if r == nil || len(r.known()) == 0 {
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

// Error returns an error that says what Text returns, and is the same to errors.Is and
// errors.As.
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

// Error returns the text without secrets.
func (e *redactedError) Error() string { return e.text }

// Unwrap returns the error that it was.
func (e *redactedError) Unwrap() error { return e.cause }

// known returns what is looked for.
func (r *Redactor) known() []form {
	r.mu.RLock()
	forms := r.forms
	r.mu.RUnlock()
	if forms != nil {
		return forms
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forms = []form{}
	seen := map[string]bool{}
	for value := range r.values {
		for _, f := range formsOf(value) {
			if !seen[f.text] && !r.public(f.text) {
				seen[f.text] = true
				r.forms = append(r.forms, f)
			}
		}
	}
	slices.SortFunc(r.forms, func(a, b form) int {
		if len(a.text) != len(b.text) {
			return len(b.text) - len(a.text)
		}
		return strings.Compare(a.text, b.text)
	})
	return r.forms
}

// public reports whether a value is one that is not taken out.
func (r *Redactor) public(value string) bool {
	if len(value) < shortest || len(value) < shortestNumber && strings.Trim(value, "0123456789") == "" || commonWords[strings.ToLower(value)] {
		return true
	}
	if len(value) > longestName {
		return false
	}
	for name := range r.names {
		if inName(name, value) {
			return true
		}
	}
	return false
}

// inName reports whether a value has to be said with a name: one that is only looked for
// as a whole word, if it is one of the words of the name. Otherwise a name of 250
// characters that somebody chooses would try as many values at once.
func inName(name, value string) bool {
	for from := 0; ; {
		at := strings.Index(name[from:], value)
		if at < 0 {
			return false
		}
		at += from
		if len(value) >= certain || boundary(name, at-1) && boundary(name, at+len(value)) {
			return true
		}
		from = at + 1
	}
}
