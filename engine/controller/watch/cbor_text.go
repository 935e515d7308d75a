package watch

import (
	"hash/maphash"
	"sync"
	"unique"

	"github.com/go-json-experiment/json/jsontext"
	"operetta.dev/engine/object"
)

// fieldSetTexts has the texts of field sets of managers. Objects have the same ones again and again, and what reads them reads JSON.
var fieldSetTexts = &knownTexts{seed: maphash.MakeSeed()}

// knownTexts remembers the JSON of what was read lately in CBOR.
type knownTexts struct {
	seed maphash.Seed

	mu    sync.Mutex
	known [256]knownText
}

type knownText struct{ cbor, text string }

// maxTextKept is up to which length something is remembered, so that all of it is at most a megabyte or two.
const maxTextKept = 2 << 10

// of returns the JSON of a value of CBOR, as text that is shared with all that is the same.
func (k *knownTexts) of(raw []byte) (string, error) {
	at := maphash.Bytes(k.seed, raw) % uint64(len(k.known))
	k.mu.Lock()
	kept := k.known[at]
	k.mu.Unlock()
	if kept.cbor == string(raw) && kept.text != "" {
		return kept.text, nil
	}
	text, err := textOfCBOR(raw)
	if err != nil {
		return "", err
	}
	text = unique.Make(text).Value()
	if len(raw) <= maxTextKept {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.known[at] = knownText{string(raw), text}
	}
	return text, nil
}

// textOfCBOR returns CBOR as JSON. An API server writes the field sets of the built-in kinds in one order, and those of others in any, which
// would be as many texts for one set. So the names of a map are in the order that CBOR prefers, or sorted.
func textOfCBOR(raw []byte) (string, error) {
	in, _ := cborReaders.Get().(*cborSyntax)
	defer cborReaders.Put(in)
	defer in.reset(nil)
	in.reset(raw)
	out, inOrder, err := in.appendJSON(nil)
	if err != nil || inOrder {
		return string(out), err
	}
	v, err := readBytes(raw, (*reader).any)
	if err != nil {
		return "", err
	}
	out, err = object.AppendJSON(out[:0], v)
	return string(out), err
}

// appendJSON appends the next value as JSON. It also returns whether the names of each map are in the order that CBOR prefers.
func (c *cborSyntax) appendJSON(out []byte) (_ []byte, inOrder bool, err error) {
	switch c.shape() {
	case mapShape:
		return c.appendAll(out, mapShape, "{}")
	case listShape:
		return c.appendAll(out, listShape, "[]")
	case scalarShape, nullShape:
	}
	v, err := c.scalar()
	if err != nil {
		return out, true, err
	}
	if text, is := v.(string); is {
		return appendQuoted(out, text), true, nil
	}
	out, err = object.AppendJSON(out, v)
	return out, true, err
}

// appendAll appends the next value, which is a map or a list.
func (c *cborSyntax) appendAll(out []byte, of shape, brackets string) (_ []byte, inOrder bool, err error) {
	if err := c.begin(of); err != nil {
		return out, false, err
	}
	out, inOrder = append(out, brackets[0]), true
	last := ""
	for first := true; c.more(); first = false {
		if !first {
			out = append(out, ',')
		}
		if of == mapShape {
			name, err := c.name()
			if err != nil {
				return out, false, err
			}
			inOrder = inOrder && (first || len(last) < len(name) || len(last) == len(name) && last < name)
			out, last = append(appendQuoted(out, name), ':'), name
		}
		var within bool
		if out, within, err = c.appendJSON(out); err != nil {
			return out, false, err
		}
		inOrder = inOrder && within
	}
	return append(out, brackets[1]), inOrder, c.end()
}

// appendQuoted appends a text as JSON. A text of a reader is UTF-8.
func appendQuoted(out []byte, text string) []byte {
	quoted, _ := jsontext.AppendQuote(out, text)
	return quoted
}
