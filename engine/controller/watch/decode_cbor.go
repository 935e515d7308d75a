package watch

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"strings"

	"operetta.dev/engine/cluster/cbor"
)

// cborSyntax is CBOR (RFC 8949), as far as an API server writes it: maps of texts, lists, texts, numbers, truth and null. Texts are byte
// strings, as who writes them need not look whether they are UTF-8. The bytes that JSON has as base64 are in a tag that says so.
//
// What comes out is what comes out of the JSON of the same API server. So a number without a fraction is an int64, whoever wrote it, of two
// fields of one name the last one counts, and what is no UTF-8 is replaced.
//
// The library that client-go uses makes Go values of all of an item, and looks for the end of one in a stream from its begin
// each time that more has come.
type cborSyntax struct {
	cbor.Stream

	// open are the maps and lists that were begun.
	open []openItem
	// encoding is the tag of the next value that says how its bytes become text; 0 is none, and otherTag one that says something else.
	encoding uint64
	names    knownNames
}

var _ syntax = (*cborSyntax)(nil)

// An openItem is a map or list of which left items are not read yet: two for each entry of a map. What is indefinite counts from 0 down,
// so that an even number is before a name.
type openItem struct {
	left       uint64
	isMap      bool
	indefinite bool
}

// otherTag is the encoding of a value with a tag that no API server writes.
const otherTag = math.MaxUint64

// maxCBORDepth is how deep items may be in each other, as in JSON.
const maxCBORDepth = 10000

// selfDescribed is the tag with which an answer of an API server begins.
const selfDescribed = "\xd9\xd9\xf7"

// isCBOR reports whether bytes begin as a map of CBOR, or as a tag around one. JSON begins with ASCII.
func isCBOR(raw []byte) bool { return len(raw) > 0 && cbor.MajorOf(raw[0]) >= cbor.Map }

func newCBOR(from io.Reader) *cborSyntax {
	return &cborSyntax{Stream: cbor.New(from)}
}

// reset has it read some bytes.
func (c *cborSyntax) reset(raw []byte) {
	c.Stream, c.open, c.encoding = cbor.Of(raw), c.open[:0], 0
}

// value reads the tags and the head of the next value.
func (c *cborSyntax) value() (cbor.Head, error) {
	if !c.untagged() {
		if err := c.tags(); err != nil {
			return cbor.Head{}, err
		}
	}
	if len(c.open) > 0 {
		in := &c.open[len(c.open)-1]
		if in.left == 0 && !in.indefinite {
			return cbor.Head{}, c.Wrong("a value behind the last one")
		}
		in.left--
	}
	h, err := c.Head()
	return h, c.ended(err)
}

// untagged reports whether there is a value without a tag. Most are, so that tags need not be called.
func (c *cborSyntax) untagged() bool {
	first, known := c.Next()
	return known && cbor.MajorOf(first) != cbor.Tag
}

// ended returns the error of a value, within which a stream may not end.
func (c *cborSyntax) ended(err error) error {
	if err == io.EOF && (len(c.open) > 0 || c.Keeps()) { //nolint:errorlint // it is of the stream, which never wraps it
		return io.ErrUnexpectedEOF
	}
	return err
}

// tags reads the tags before a value.
func (c *cborSyntax) tags() error {
	tagged := false
	for {
		if err := c.Need(1); err != nil {
			if tagged || c.encoding != 0 {
				return cbor.NoEnd(err)
			}
			return c.ended(err)
		}
		if c.untagged() {
			return nil
		}
		h, err := c.Head()
		if err != nil {
			return cbor.NoEnd(err)
		}
		tagged = true
		switch {
		case h.N == cbor.SelfDescribed || c.encoding == otherTag:
		case h.N >= cbor.Base64URL && h.N <= cbor.Base16:
			c.encoding = h.N
		default:
			c.encoding = otherTag
		}
	}
}

func (c *cborSyntax) shape() shape {
	if !c.untagged() && c.tags() != nil {
		return scalarShape // who reads it has the error again
	}
	first, _ := c.Next()
	switch major := cbor.MajorOf(first); {
	case major == cbor.Map:
		return mapShape
	case major == cbor.List:
		return listShape
	case first == cbor.Null:
		return nullShape
	}
	return scalarShape
}

func (c *cborSyntax) begin(of shape) error {
	h, err := c.value()
	if err != nil {
		return err
	}
	want := cbor.Map
	if of == listShape {
		want = cbor.List
	}
	if h.Major != want {
		return c.Wrong(fmt.Sprintf("type %d instead of %d", h.Major, want))
	}
	return c.push(h)
}

// push begins a map or list of which the head was read.
func (c *cborSyntax) push(h cbor.Head) error {
	switch {
	case c.encoding != 0:
		return c.Wrong("an encoding of what is no bytes")
	case len(c.open) >= maxCBORDepth:
		return c.Wrong("too many items in each other")
	case h.N > math.MaxInt32: // each takes a byte at least
		return c.Wrong("too many items")
	case h.Major == cbor.Map:
		h.N *= 2
	}
	c.open = append(c.open, openItem{left: h.N, isMap: h.Major == cbor.Map, indefinite: h.Indefinite()})
	return nil
}

func (c *cborSyntax) more() bool {
	in := c.open[len(c.open)-1]
	if !in.indefinite {
		return in.left > 0
	}
	if c.Need(1) != nil {
		return true // who reads has the error again
	}
	first, _ := c.Next()
	return first != cbor.Break
}

func (c *cborSyntax) end() error {
	last := len(c.open) - 1
	in := c.open[last]
	c.open = c.open[:last]
	if !in.indefinite {
		return nil
	}
	c.PassBreak() // more has seen it
	if in.isMap && in.left%2 != 0 {
		return c.Wrong("a name without a value")
	}
	return nil
}

func (c *cborSyntax) name() (string, error) {
	v, err := c.nameBytes()
	if err != nil {
		return "", err
	}
	return c.names.of(v), nil
}

// nameBytes reads a name. Its bytes are there until the next call.
func (c *cborSyntax) nameBytes() ([]byte, error) {
	h, err := c.value()
	if err != nil {
		return nil, err
	}
	if h.Major != cbor.Bytes && h.Major != cbor.Text || c.encoding != 0 {
		return nil, c.Wrong("a name that is no text")
	}
	return c.Bytes(h)
}

func (c *cborSyntax) scalar() (any, error) {
	h, err := c.value()
	encoding := c.encoding
	c.encoding = 0
	switch {
	case err != nil:
		return nil, err
	case encoding == otherTag:
		return nil, c.Wrong("a tag")
	}
	switch h.Major {
	case cbor.Unsigned, cbor.Negative:
		return cbor.Integer(h), nil
	case cbor.Bytes, cbor.Text:
		v, err := c.Bytes(h)
		if err != nil {
			return nil, err
		}
		if h.Major == cbor.Text {
			encoding = 0
		}
		return encoded(v, encoding), nil
	case cbor.Simple:
		return c.simple(h)
	case cbor.List, cbor.Map, cbor.Tag:
	}
	return nil, c.Wrong(fmt.Sprintf("type %d instead of a scalar", h.Major))
}

// encoded returns bytes as the text of an encoding.
func encoded(v []byte, encoding uint64) string {
	switch encoding {
	case cbor.Base64:
		return base64.StdEncoding.EncodeToString(v)
	case cbor.Base64URL:
		return base64.RawURLEncoding.EncodeToString(v)
	case cbor.Base16:
		return strings.ToUpper(hex.EncodeToString(v))
	}
	return cbor.TextOf(v)
}

// simple returns what is no integer, text, map or list.
func (c *cborSyntax) simple(h cbor.Head) (any, error) {
	v, is := cbor.Plain(h)
	if !is {
		return nil, c.Wrong("what JSON cannot say")
	}
	return v, nil
}

func (c *cborSyntax) raw() ([]byte, error) {
	if err := c.tags(); err != nil {
		return nil, err
	}
	if c.encoding != 0 {
		return nil, c.Wrong("an encoding of what is read as it is")
	}
	c.Keep()
	err := c.skip()
	return c.Kept(), err
}

// skip errors for all that is no CBOR as it is read, because what is packed unread is read later, where no other syntax can be asked for.
func (c *cborSyntax) skip() error {
	for outside := len(c.open); ; {
		if err := c.skipOne(); err != nil {
			return err
		}
		if len(c.open) > outside {
			c.passShort()
		}
		for len(c.open) > outside && !c.more() {
			if err := c.end(); err != nil {
				return err
			}
			if len(c.open) > outside {
				c.passShort()
			}
		}
		if len(c.open) == outside {
			return nil
		}
	}
}

// passShort skips what is short in what was begun last.
func (c *cborSyntax) passShort() {
	in := &c.open[len(c.open)-1]
	in.left = c.PassShort(in.left, in.isMap)
}

// skipOne skips a scalar, or the head of a map or list.
func (c *cborSyntax) skipOne() error {
	if n := len(c.open); n > 0 && c.open[n-1].isMap && c.open[n-1].left%2 == 0 {
		_, err := c.nameBytes()
		return err
	}
	h, err := c.value()
	switch {
	case err != nil:
		return err
	case c.encoding == otherTag:
		return c.Wrong("a tag")
	}
	switch h.Major {
	case cbor.Map, cbor.List:
		return c.push(h)
	case cbor.Bytes, cbor.Text:
		_, err = c.Bytes(h)
	case cbor.Simple:
		_, err = c.simple(h)
	case cbor.Unsigned, cbor.Negative, cbor.Tag:
	}
	c.encoding = 0
	return err
}

func (c *cborSyntax) offset() int                           { return c.Offset() }
func (c *cborSyntax) sharedText(raw []byte) (string, error) { return fieldSetTexts.of(raw) }
