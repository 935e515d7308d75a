package watch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unique"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/ownership"
)

// Most of what a watch says is never read: fields of managers, and objects that change several times between two
// reconciles. The decoder of client-go makes maps of all of it, and reads each byte four times. This one reads the
// bytes once, and makes maps of what a caller asks for.

// readOptions have a reader take what the decoder of client-go takes.
var readOptions = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// managedFieldsKey and fieldSetKey are where the managed fields of an object are in its metadata, and their fields in
// each entry.
const (
	managedFieldsKey = "managedFields"
	fieldSetKey      = "fieldsV1"
)

// A reader makes of JSON what the decoder of client-go makes: maps, slices, int64 and float64.
type reader struct {
	*jsontext.Decoder

	// names are the names of fields that it has read lately. Objects have the same ones again and again.
	names [256]string
}

// newReader returns a reader of a stream.
func newReader(from io.Reader) *reader {
	return &reader{Decoder: jsontext.NewDecoder(from, readOptions...)}
}

// readers are not in use.
var readers = sync.Pool{New: func() any { return newReader(&bytes.Buffer{}) }}

// readBytes reads bytes, which have one value.
func readBytes[T any](raw []byte, read func(*reader) (T, error)) (T, error) {
	r, _ := readers.Get().(*reader)
	defer readers.Put(r)
	r.Reset(bytes.NewBuffer(raw), readOptions...)
	defer r.Reset(&bytes.Buffer{}, readOptions...) // it keeps no object alive
	out, err := read(r)
	if err != nil {
		return out, err
	}
	return out, r.end()
}

// end reads the end of a stream.
func (r *reader) end() error {
	if _, err := r.ReadToken(); err == nil {
		return fmt.Errorf("something follows at byte %d", r.InputOffset())
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// any reads the next value.
func (r *reader) any() (any, error) {
	if kind := r.PeekKind(); kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray {
		return r.nested(kind)
	}
	v, err := r.ReadValue()
	if err != nil {
		return nil, err
	}
	return scalar(v)
}

// nested reads the next value, which is an object or a list.
func (r *reader) nested(kind jsontext.Kind) (any, error) {
	if kind == jsontext.KindBeginObject {
		out := map[string]any{}
		err := r.fields(func(name string) error {
			v, err := r.any()
			out[name] = v
			return err
		})
		return out, err
	}
	out := []any{}
	err := r.items(func() error {
		v, err := r.any()
		out = append(out, v)
		return err
	})
	return out, err
}

// scalar returns a value that is no object and no list.
func scalar(v jsontext.Value) (any, error) {
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

// fields calls a function for each field of the next value, which has to read its value. It errors if that is no object.
func (r *reader) fields(read func(name string) error) error {
	if err := r.begin(jsontext.KindBeginObject); err != nil {
		return err
	}
	for r.PeekKind() != jsontext.KindEndObject {
		name, err := r.ReadValue()
		if err == nil {
			err = read(r.nameOf(name))
		}
		if err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// items calls a function for each item of the next value, which has to read it. It errors if that is no list.
func (r *reader) items(read func() error) error {
	if err := r.begin(jsontext.KindBeginArray); err != nil {
		return err
	}
	for r.PeekKind() != jsontext.KindEndArray {
		if err := read(); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// begin reads the begin of an object or a list.
func (r *reader) begin(kind jsontext.Kind) error {
	token, err := r.ReadToken()
	if err == nil && token.Kind() != kind {
		return fmt.Errorf("%v at byte %d instead of %v", token.Kind(), r.InputOffset(), kind)
	}
	return err
}

// text reads the next value, which is "" if it is no text.
func (r *reader) text() (string, error) {
	v, err := r.ReadValue()
	if err != nil || v.Kind() != jsontext.KindString {
		return "", err
	}
	return unquote(v), nil
}

// nameOf returns the name of a field.
func (r *reader) nameOf(v jsontext.Value) string {
	hash := len(v)
	for _, c := range v {
		hash = hash*31 + int(c)
	}
	if kept := &r.names[hash&0xff]; len(v) <= maxNameKept {
		if len(*kept)+2 != len(v) || *kept != string(v[1:len(v)-1]) || bytes.IndexByte(v, '\\') >= 0 {
			*kept = unquote(v)
		}
		return *kept
	}
	return unquote(v)
}

// maxNameKept is up to which length a reader remembers names.
const maxNameKept = 64

// unquote returns the text of a JSON string.
func unquote(v jsontext.Value) string {
	if bytes.IndexByte(v, '\\') < 0 && utf8.Valid(v) {
		return string(v[1 : len(v)-1])
	}
	out, _ := jsontext.AppendUnquote(nil, v) // it was read, so the only error is one of UTF-8, which is replaced
	return string(out)
}

// number returns an int64 if a number is one, or else a float64.
func number(v jsontext.Value) (any, error) {
	if bytes.IndexByte(v, '.') < 0 {
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return i, nil
		}
	}
	return strconv.ParseFloat(string(v), 64)
}

// object reads the next value as an object. The fields of its managers are text, as CompactManagedFields leaves them. It
// leaves out fields by which a cache knows what it has packed or stripped: an object may not claim that of itself.
func (r *reader) object() (*unstructured.Unstructured, error) {
	out := map[string]any{}
	err := r.fields(func(name string) (err error) {
		if slices.Contains(cacheFields, name) {
			return r.SkipValue()
		}
		if name == "metadata" && r.PeekKind() == jsontext.KindBeginObject {
			out[name], err = r.metadata()
			return err
		}
		out[name], err = r.any()
		return err
	})
	return &unstructured.Unstructured{Object: out}, err
}

func (r *reader) metadata() (map[string]any, error) {
	out := map[string]any{}
	return out, r.fields(func(name string) (err error) {
		if name != managedFieldsKey || r.PeekKind() != jsontext.KindBeginArray {
			out[name], err = r.any()
			return err
		}
		entries := []any{}
		err = r.items(func() error {
			entry, err := r.managedEntry()
			entries = append(entries, entry)
			return err
		})
		out[name] = entries
		return err
	})
}

func (r *reader) managedEntry() (any, error) {
	if r.PeekKind() != jsontext.KindBeginObject {
		return r.any()
	}
	out := map[string]any{}
	return out, r.fields(func(name string) (err error) {
		if name != fieldSetKey || r.PeekKind() != jsontext.KindBeginObject {
			out[name], err = r.any()
			return err
		}
		v, err := r.ReadValue()
		out[name] = sharedText(v)
		return err
	})
}

// sharedText returns text that it shares with all that is the same.
func sharedText(v jsontext.Value) string { return unique.Make(string(v)).Value() }

// whole returns an object with all of it.
func whole(raw []byte) (*unstructured.Unstructured, error) {
	return readBytes(raw, (*reader).object)
}

// maxPackedAtOnce is up to which length an object is packed without looking at all of it. What it takes as maps is
// below maxCachedSize then, but for lists of next to nothing, which no reader unpacks but the owner.
const maxPackedAtOnce = maxCachedSize / 4

// packedOrWhole returns an object as the cache of owned objects keeps it if that can be said without making maps of it, or
// else whole. The transform of the cache does the rest. It is not for kinds of which objects may run to their end.
func packedOrWhole(raw []byte) (*unstructured.Unstructured, error) {
	if len(raw) > maxPackedAtOnce {
		return whole(raw)
	}
	u, err := packedBytes(raw)
	if err != nil {
		return whole(raw)
	}
	if _, _, marked := ownership.ParseOwner(u.GetAnnotations()[ownership.OwnerAnnotation]); !marked {
		return whole(raw)
	}
	return u, nil
}

// A cut is a part of bytes.
type cut struct{ from, to int }

// A packing reads what a packed object has as it is.
type packing struct {
	*reader

	kept map[string]any
	sets []any
	cuts []cut
}

// packedBytes is packed for an object as an API server writes it.
func packedBytes(raw []byte) (*unstructured.Unstructured, error) {
	return readBytes(raw, func(r *reader) (*unstructured.Unstructured, error) {
		p := &packing{reader: r}
		return p.object(raw)
	})
}

// object reads an object of some bytes.
func (p *packing) object(raw []byte) (*unstructured.Unstructured, error) {
	out := map[string]any{}
	err := p.fields(func(name string) (err error) {
		switch name {
		case "apiVersion", "kind":
			var v string
			v, err = p.text()
			out[name] = unique.Make(v).Value()
		case "metadata":
			err = p.metadata()
		default:
			err = p.SkipValue()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out["metadata"], out[packedField] = p.kept, without(raw, p.cuts)
	if slices.ContainsFunc(p.sets, func(set any) bool { return set != nil }) {
		out[fieldSetsField] = p.sets
	}
	return &unstructured.Unstructured{Object: out}, nil
}

// without returns bytes with null in the place of parts.
func without(raw []byte, parts []cut) string {
	const none = "null"
	size, at := len(raw), 0
	for _, part := range parts {
		size += len(none) - (part.to - part.from)
	}
	var out strings.Builder
	out.Grow(size)
	for _, part := range parts {
		out.Write(raw[at:part.from])
		out.WriteString(none)
		at = part.to
	}
	out.Write(raw[at:])
	return out.String()
}

func (p *packing) metadata() error {
	p.kept, p.sets = map[string]any{}, nil // of two, the last one counts
	return p.fields(func(name string) (err error) {
		switch {
		case name == "annotations" && p.PeekKind() == jsontext.KindBeginObject:
			return p.annotations()
		case name == managedFieldsKey && p.PeekKind() == jsontext.KindBeginArray:
			p.sets = nil // of two, the last one counts
			return p.items(p.managedEntry)
		case slices.Contains(unpackedMetadata, name):
			p.kept[name], err = p.any()
			return err
		}
		return p.SkipValue()
	})
}

func (p *packing) annotations() error {
	marks := map[string]any{}
	p.kept["annotations"] = marks
	return p.fields(func(name string) (err error) {
		if slices.Contains(unpackedMarks, name) {
			marks[name], err = p.any()
			return err
		}
		return p.SkipValue()
	})
}

func (p *packing) managedEntry() error {
	var set any
	err := p.fields(func(name string) error {
		if name != fieldSetKey || p.PeekKind() != jsontext.KindBeginObject {
			return p.SkipValue()
		}
		v, err := p.ReadValue()
		if err != nil {
			return err
		}
		end := int(p.InputOffset())
		set = sharedText(v)
		p.cuts = append(p.cuts, cut{end - len(v), end})
		return nil
	})
	p.sets = append(p.sets, set)
	return err
}

// plainError returns the error of a stream in the form that readers of watches expect.
func plainError(err error) error {
	for _, plain := range []error{io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, plain) {
			return plain
		}
	}
	if _, wrong := errors.AsType[*jsontext.SyntacticError](err); wrong {
		return err
	}
	return cmp.Or(errors.Unwrap(err), err) // the reader says that it was reading
}
