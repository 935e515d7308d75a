package watch

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
	"unique"

	"github.com/go-json-experiment/json/jsontext"
	"operetta.dev/engine/cluster/cbor"
)

// readOptions have a reader take what the decoder of client-go takes.
var readOptions = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// jsonSyntax is JSON.
type jsonSyntax struct {
	*jsontext.Decoder

	names knownNames
}

var _ syntax = (*jsonSyntax)(nil)

func newJSON(from io.Reader) *jsonSyntax {
	return &jsonSyntax{Decoder: jsontext.NewDecoder(from, readOptions...)}
}

func (j *jsonSyntax) shape() shape {
	switch j.PeekKind() { //nolint:exhaustive // of most kinds is what is no map and no list
	case jsontext.KindBeginObject:
		return mapShape
	case jsontext.KindBeginArray:
		return listShape
	case jsontext.KindNull:
		return nullShape
	}
	return scalarShape
}

func (j *jsonSyntax) begin(of shape) error {
	kind := jsontext.KindBeginObject
	if of == listShape {
		kind = jsontext.KindBeginArray
	}
	token, err := j.ReadToken()
	if err == nil && token.Kind() != kind {
		return fmt.Errorf("%v at byte %d instead of %v", token.Kind(), j.InputOffset(), kind)
	}
	return err
}

func (j *jsonSyntax) more() bool {
	kind := j.PeekKind()
	return kind != jsontext.KindEndObject && kind != jsontext.KindEndArray
}

func (j *jsonSyntax) end() error {
	_, err := j.ReadToken()
	return err
}

func (j *jsonSyntax) name() (string, error) {
	v, err := j.ReadValue()
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(v, '\\') >= 0 {
		return unquote(v), nil
	}
	return j.names.of(v[1 : len(v)-1]), nil
}

func (j *jsonSyntax) scalar() (any, error) {
	v, err := j.ReadValue()
	if err != nil {
		return nil, err
	}
	kind := v.Kind()
	if kind == jsontext.KindString {
		return unquote(v), nil
	}
	if kind == jsontext.KindNumber {
		return number(v)
	}
	if kind == jsontext.KindNull {
		return nil, nil
	}
	return kind == jsontext.KindTrue, nil
}

func (j *jsonSyntax) raw() ([]byte, error) { return j.ReadValue() }
func (j *jsonSyntax) skip() error          { return j.SkipValue() }
func (j *jsonSyntax) offset() int          { return int(j.InputOffset()) }
func (j *jsonSyntax) sharedText(raw []byte) (string, error) {
	return unique.Make(string(raw)).Value(), nil
}

// unquote returns the text of a JSON string.
func unquote(v jsontext.Value) string {
	if bytes.IndexByte(v, '\\') < 0 && utf8.Valid(v) {
		return string(v[1 : len(v)-1])
	}
	out, _ := jsontext.AppendUnquote(nil, v) // it was read, so the only error is one of UTF-8, which is replaced
	return string(out)
}

// number returns an int64 if a number is one, or else a float64.
func number(v []byte) (any, error) {
	if bytes.IndexByte(v, '.') < 0 {
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return i, nil
		}
	}
	return strconv.ParseFloat(string(v), 64)
}

// knownNames are the names of fields that were read lately. Objects have the same ones again and again.
type knownNames [256]string

// maxNameKept is up to which length a name is remembered.
const maxNameKept = 64

// of returns a name as text.
func (n *knownNames) of(v []byte) string {
	if len(v) > maxNameKept {
		return cbor.TextOf(v)
	}
	hash := len(v)
	for _, c := range v {
		hash = hash*31 + int(c)
	}
	kept := &n[hash&0xff]
	if *kept != string(v) {
		*kept = cbor.TextOf(v)
	}
	return *kept
}
