// Package cbor reads CBOR (RFC 8949) as an API server writes it: heads and strings, one after the other. What they are in, a caller knows.
//
// An API server writes texts as byte strings, since who writes those need not look whether they are UTF-8, and the bytes that JSON has as
// base64 in a tag that says so. Of numbers it says which ones are floats, which JSON does not say of 1.0. Number, Integer and Text return
// what comes out of the JSON of the same API server.
package cbor

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// A Stream is read item by item.
type Stream struct {
	from io.Reader // nil if all is in buf
	// buf are bytes of the stream, of which those before at are read. base is where the stream has the first of them.
	buf      []byte
	at, base int
	// kept is from where bytes are needed again; -1 is nowhere.
	kept int
}

// New returns a stream of what a reader has.
func New(from io.Reader) Stream { return Stream{from: from, kept: -1} }

// Of returns a stream of some bytes.
func Of(raw []byte) Stream { return Stream{buf: raw, kept: -1} }

// A Major is the major type of an item. A float is of type Simple.
type Major byte

// The major types.
const (
	Unsigned Major = iota
	Negative
	Bytes
	Text
	List
	Map
	Tag
	Simple
)

// MajorOf returns the major type of the item that begins with a byte.
func MajorOf(first byte) Major { return Major(first >> majorShift) }

const (
	// majorShift is where a byte has the major type.
	majorShift = 5
	// readSize is how much is read at least at once.
	readSize = 4 << 10
)

// False, True and Null are bytes that follow each other. Break ends what has no length.
const (
	False = 0xf4 + iota
	True
	Null

	// Break is the byte at the end.
	Break = 0xff
)

// The tags that an API server writes: SelfDescribed around an answer, and others around bytes that JSON has in an encoding.
const (
	Base64URL     = 21
	Base64        = 22
	Base16        = 23
	SelfDescribed = 55799
)

// A Head is what an item begins with. Its info is how the number is written.
type Head struct {
	Major Major
	info  byte
	N     uint64
}

const (
	// infoByte is the info of a head whose number is in the byte behind, infoLast that of one with eight, and infoIndefinite that of one
	// without a length.
	infoByte, infoLast, infoIndefinite = 24, 27, 31
	// infoMask is where a byte has the info.
	infoMask = 0x1f
	// infoFloat16 is the info of the shortest float. Those of 4 and of 8 bytes follow.
	infoFloat16 = 25
)

// Indefinite reports whether the item has no length, and ends with a Break.
func (h Head) Indefinite() bool { return h.info == infoIndefinite }

// float returns a float, or false if a head of type Simple is none.
func (h Head) float() (float64, bool) {
	switch h.info {
	case infoFloat16:
		return float16(h.N), true
	case infoFloat16 + 1:
		return float64(math.Float32frombits(uint32(h.N))), true //nolint:gosec // it was read from four bytes
	case infoFloat16 + 2:
		return math.Float64frombits(h.N), true
	}
	return 0, false
}

// float16 returns a float of two bytes.
func float16(bits uint64) float64 {
	const fractionBits, bias = 10, 15
	exponent, fraction := int(bits>>fractionBits&0x1f), float64(bits&0x3ff)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, 1-bias-fractionBits)
	case 0x1f:
		v = math.Inf(1)
		if fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(fraction+1<<fractionBits, exponent-bias-fractionBits)
	}
	if bits>>15 != 0 {
		v = -v
	}
	return v
}

// An Error says what an API server does not write.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// Wrong returns the error of what is before here.
func (c *Stream) Wrong(what string) error {
	return Error(fmt.Sprintf("%s before byte %d of CBOR", what, c.base+c.at))
}

// Need errors unless there are n more bytes: with io.EOF if there are none, or with io.ErrUnexpectedEOF. What an item says of its length
// is believed as far as bytes come.
func (c *Stream) Need(n int) error {
	for len(c.buf)-c.at < n {
		if err := c.fill(n); err != nil {
			return err
		}
	}
	return nil
}

// fill reads some of the next n bytes.
func (c *Stream) fill(n int) error {
	if c.from == nil {
		return c.noMore()
	}
	used := c.at
	if c.kept >= 0 {
		used = c.kept
	}
	if used > 0 && (used == len(c.buf) || used >= cap(c.buf)/2) {
		c.buf = c.buf[:copy(c.buf, c.buf[used:])]
		c.at, c.base = c.at-used, c.base+used
		c.kept = max(c.kept-used, -1)
	}
	c.buf = slices.Grow(c.buf, max(readSize, min(n, len(c.buf))))
	got, err := c.from.Read(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+got]
	switch {
	case got > 0 || err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return c.noMore()
	}
	return fmt.Errorf("reading: %w", err)
}

func (c *Stream) noMore() error {
	if c.at < len(c.buf) {
		return io.ErrUnexpectedEOF
	}
	return io.EOF
}

// NoEnd returns the error of a stream that must not end here.
func NoEnd(err error) error {
	if err == io.EOF { //nolint:errorlint // Need never wraps it
		return io.ErrUnexpectedEOF
	}
	return err
}

// Head reads the head of an item.
func (c *Stream) Head() (Head, error) {
	if err := c.Need(1); err != nil {
		return Head{}, err
	}
	h := Head{Major: MajorOf(c.buf[c.at]), info: c.buf[c.at] & infoMask}
	switch {
	case h.info < infoByte:
		c.at++
		h.N = uint64(h.info)
		return h, nil
	case h.Indefinite() && h.Major != Unsigned && h.Major != Negative && h.Major != Tag:
		c.at++
		return h, nil
	case h.info > infoLast:
		return h, c.Wrong("a head that means nothing")
	}
	size := 1 << (h.info - infoByte)
	if err := c.Need(1 + size); err != nil {
		return h, NoEnd(err)
	}
	for _, b := range c.buf[c.at+1 : c.at+1+size] {
		h.N = h.N<<8 | uint64(b)
	}
	c.at += 1 + size
	return h, nil
}

// Bytes reads the bytes of a string, of which the head was read. They are there until the next call.
func (c *Stream) Bytes(h Head) ([]byte, error) {
	if !h.Indefinite() {
		return c.pass(h.N)
	}
	out := []byte{}
	for {
		part, err := c.Head()
		switch {
		case err != nil:
			return nil, NoEnd(err)
		case part.Major == Simple && part.Indefinite():
			return out, nil
		case part.Major != h.Major || part.Indefinite():
			return nil, c.Wrong("a part of a string that is of another type")
		}
		v, err := c.pass(part.N)
		if err != nil {
			return nil, err
		}
		out = append(out, v...)
	}
}

// pass reads some bytes.
func (c *Stream) pass(n uint64) ([]byte, error) {
	if n > math.MaxInt32 {
		return nil, c.Wrong("a string without an end")
	}
	if err := c.Need(int(n)); err != nil {
		return nil, NoEnd(err)
	}
	c.at += int(n)
	return c.buf[c.at-int(n) : c.at], nil
}

// Next returns the first byte of the next item, if it was read from the stream.
func (c *Stream) Next() (first byte, known bool) {
	if c.at >= len(c.buf) {
		return 0, false
	}
	return c.buf[c.at], true
}

// PassBreak passes a Break, which Next has returned.
func (c *Stream) PassBreak() { c.at++ }

// Offset is how many bytes were read.
func (c *Stream) Offset() int { return c.base + c.at }

// Keep keeps the bytes from here, and Kept returns those until here, which are there until the next call.
func (c *Stream) Keep() { c.kept = c.at }

// Kept returns the bytes since Keep.
func (c *Stream) Kept() []byte {
	from := c.kept
	c.kept = -1
	return c.buf[from:c.at]
}

// Keeps reports whether bytes are kept.
func (c *Stream) Keeps() bool { return c.kept >= 0 }

// PassShort passes what is most of an object: short strings, small numbers, truth and null. It returns how many of some items are left. In a
// map, each second one is a name, and only strings are names.
func (c *Stream) PassShort(left uint64, inMap bool) uint64 {
	for left > 0 && c.at < len(c.buf) {
		first, end := c.buf[c.at], c.at+1
		major, info := MajorOf(first), first&infoMask
		switch {
		case major == Bytes || major == Text:
			if info == infoByte && end < len(c.buf) {
				info = c.buf[end]
				end++
			} else if info >= infoByte {
				return left
			}
			end += int(info)
		case inMap && left%2 == 0:
			return left
		case info < infoByte && major <= Negative, first >= False && first <= Null:
		default:
			return left
		}
		if end > len(c.buf) {
			return left
		}
		c.at = end
		left--
	}
	return left
}
