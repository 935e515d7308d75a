package watch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Most of what a watch says is never read: fields of managers, and objects that change several times between two
// reconciles. The decoder of client-go makes maps of all of it, and reads each byte four times. This one reads the
// bytes once, and makes maps of what a caller asks for.

// managedFieldsKey and fieldSetKey are where the managed fields of an object are in its metadata, and their fields in
// each entry.
const (
	managedFieldsKey = "managedFields"
	fieldSetKey      = "fieldsV1"
)

// A shape is what a value is, as far as a reader has to know that before it reads the value.
type shape int

// The shapes. A scalar is what is none of the others, also if it is no value at all.
const (
	scalarShape shape = iota
	mapShape
	listShape
	nullShape
)

// A syntax reads one value after the other from a stream of JSON or of CBOR.
type syntax interface {
	// shape returns what the next value is.
	shape() shape
	// begin reads the begin of a map or a list, and end its end. It errors if the next value is not of that shape.
	begin(of shape) error
	// more reports whether the map or list that was begun last has more entries. After it, the reader is asked for one.
	more() bool
	end() error
	// name reads the name of an entry of a map.
	name() (string, error)
	// scalar reads a value that is no map and no list.
	scalar() (any, error)
	// raw reads a value and returns its bytes, until the next call.
	raw() ([]byte, error)
	skip() error
	// offset is where the last value ended, in bytes from the begin of the stream.
	offset() int
	// sharedText returns the JSON of a value of raw, as text that is shared with all that is the same.
	sharedText(raw []byte) (string, error)
}

// A reader makes of JSON what the decoder of client-go makes, and of CBOR what that makes of the same in JSON: maps,
// slices, int64 and float64.
type reader struct{ syntax }

// newReader returns a reader of a stream of JSON.
func newReader(from io.Reader) *reader { return &reader{newJSON(from)} }

// openReader returns a reader of a stream: its first byte, for which it waits, says whether it is CBOR. An answer of an API
// server is a map, or a tag around one, and no JSON begins as those do. So no header of a proxy has a say in it.
func openReader(from io.Reader) (*reader, error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(from, first); err != nil {
		return nil, err
	}
	from = io.MultiReader(bytes.NewReader(first), from)
	if isCBOR(first) {
		return &reader{newCBOR(from)}, nil
	}
	return newReader(from), nil
}

// isCBOR reports whether it reads CBOR.
func (r *reader) isCBOR() bool {
	_, is := r.syntax.(*cborSyntax)
	return is
}

// jsonReaders and cborReaders are not in use.
var (
	jsonReaders = sync.Pool{New: func() any { return newJSON(&bytes.Buffer{}) }}
	cborReaders = sync.Pool{New: func() any { return newCBOR(nil) }}
)

// readBytes reads bytes, which have one value.
func readBytes[T any](raw []byte, read func(*reader) (T, error)) (T, error) {
	if isCBOR(raw) {
		c, _ := cborReaders.Get().(*cborSyntax)
		defer cborReaders.Put(c)
		c.reset(raw)
		defer c.reset(nil) // it keeps no object alive
		return readAll(&reader{c}, read)
	}
	j, _ := jsonReaders.Get().(*jsonSyntax)
	defer jsonReaders.Put(j)
	j.Reset(bytes.NewBuffer(raw), readOptions...)
	defer j.Reset(&bytes.Buffer{}, readOptions...)
	return readAll(&reader{j}, read)
}

// readAll reads a value that is the whole stream.
func readAll[T any](r *reader, read func(*reader) (T, error)) (T, error) {
	out, err := read(r)
	if err != nil {
		return out, err
	}
	return out, r.close()
}

// close reads the end of a stream.
func (r *reader) close() error {
	if err := r.skip(); err == nil {
		return fmt.Errorf("something follows at byte %d", r.offset())
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// any reads the next value.
func (r *reader) any() (any, error) {
	switch r.shape() {
	case mapShape:
		out := map[string]any{}
		return out, r.fields(func(name string) error {
			v, err := r.any()
			out[name] = v
			return err
		})
	case listShape:
		out := []any{}
		err := r.items(func() error {
			v, err := r.any()
			out = append(out, v)
			return err
		})
		return out, err
	case scalarShape, nullShape:
	}
	return r.scalar()
}

// fields calls a function for each field of the next value, which has to read its value. It errors if that is no map.
func (r *reader) fields(read func(name string) error) error {
	if err := r.begin(mapShape); err != nil {
		return err
	}
	for r.more() {
		name, err := r.name()
		if err == nil {
			err = read(name)
		}
		if err != nil {
			return err
		}
	}
	return r.end()
}

// items calls a function for each item of the next value, which has to read it. It errors if that is no list.
func (r *reader) items(read func() error) error {
	if err := r.begin(listShape); err != nil {
		return err
	}
	for r.more() {
		if err := read(); err != nil {
			return err
		}
	}
	return r.end()
}

// string reads the next value, which is "" if it is no text.
func (r *reader) string() (string, error) {
	if s := r.shape(); s == mapShape || s == listShape {
		return "", r.skip()
	}
	v, err := r.scalar()
	out, _ := v.(string)
	return out, err
}

// object reads the next value as an object. The fields of its managers are text, as CompactManagedFields leaves them. It
// leaves out fields by which a cache knows what it has packed or stripped: an object may not claim that of itself.
func (r *reader) object() (*unstructured.Unstructured, error) {
	out := map[string]any{}
	err := r.fields(func(name string) (err error) {
		if slices.Contains(cacheFields, name) {
			return r.skip()
		}
		if name == "metadata" && r.shape() == mapShape {
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
		if name != managedFieldsKey || r.shape() != listShape {
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
	if r.shape() != mapShape {
		return r.any()
	}
	out := map[string]any{}
	return out, r.fields(func(name string) (err error) {
		if name != fieldSetKey || r.shape() != mapShape {
			out[name], err = r.any()
			return err
		}
		out[name], _, err = r.fieldSet()
		return err
	})
}

// fieldSet reads the fields of a manager as text. It also returns how many bytes they were.
func (r *reader) fieldSet() (set string, length int, err error) {
	raw, err := r.raw()
	if err != nil {
		return "", 0, err
	}
	length = len(raw)
	set, err = r.sharedText(raw)
	return set, length, err
}

// whole returns an object with all of it.
func whole(raw []byte) (*unstructured.Unstructured, error) {
	return readBytes(raw, (*reader).object)
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
