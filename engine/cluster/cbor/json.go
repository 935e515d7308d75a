package cbor

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

// Number returns a float as JSON has it: an int64 if it has no fraction, whoever wrote it, as far as that is one.
func Number(v float64) any {
	if math.Trunc(v) != v || math.Abs(v) >= 1<<63 {
		return v
	}
	const exact = 1 << 53
	if math.Abs(v) < exact {
		return int64(v)
	}
	i, err := strconv.ParseInt(strconv.FormatFloat(v, 'f', -1, 64), 10, 64) // JSON has no digits beyond those that matter
	if err != nil {
		return v
	}
	return i
}

// Integer returns the integer of a head of type Unsigned or Negative. What is too large for an int64 is a float.
func Integer(h Head) any {
	switch negative := h.Major == Negative; {
	case h.N > math.MaxInt64 && negative:
		return -1 - float64(h.N)
	case h.N > math.MaxInt64:
		return float64(h.N)
	case negative:
		return -1 - int64(h.N)
	}
	return int64(h.N)
}

// Plain returns truth, null or the number of a head of type Simple. It returns false for what JSON cannot say.
func Plain(h Head) (any, bool) {
	switch byte(Simple)<<majorShift | h.info {
	case False:
		return false, true
	case True:
		return true, true
	case Null:
		return nil, true
	}
	v, is := h.float()
	if !is || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, false
	}
	return Number(v), true
}

// TextOf returns bytes as text. As in JSON, each byte that is none is replaced.
func TextOf(v []byte) string {
	if utf8.Valid(v) {
		return string(v)
	}
	return string([]rune(string(v)))
}

// LikeJSON returns an answer of an API server so that what a decoder makes of its numbers and texts is what one makes of those in JSON. It
// returns false if the bytes are no heads and strings of CBOR.
func LikeJSON(raw []byte) ([]byte, bool) {
	s := Of(raw)
	out, from, encoded := []byte(nil), 0, false
	for s.at < len(raw) {
		begin := s.at
		h, err := s.Head()
		if err != nil {
			return nil, false
		}
		with, err := s.likeJSON(h, encoded)
		if err != nil {
			return nil, false
		}
		if with != nil {
			out = append(append(out, raw[from:begin]...), with...)
			from = s.at
		}
		encoded = h.Major == Tag && h.N >= Base64URL && h.N <= Base16
	}
	if from == 0 {
		return raw, true
	}
	return append(out, raw[from:]...), true
}

// likeJSON passes the item of a head. It returns what to put in the place of the item; nil leaves it.
func (c *Stream) likeJSON(h Head, encoded bool) ([]byte, error) {
	switch h.Major {
	case Bytes, Text:
		if h.Indefinite() {
			return nil, nil // its parts follow
		}
		v, err := c.pass(h.N)
		if err != nil || encoded || utf8.Valid(v) {
			return nil, err
		}
		text := TextOf(v)
		return append(appendHead(nil, Bytes, uint64(len(text))), text...), nil
	case Unsigned, Negative:
		if v, is := Integer(h).(float64); is {
			return appendFloat(v), nil
		}
	case Simple:
		if v, _ := Plain(h); h.info >= infoFloat16 {
			if i, is := v.(int64); is {
				return appendInteger(i), nil
			}
		}
	case List, Map, Tag:
	}
	return nil, nil
}

func appendInteger(v int64) []byte {
	if v < 0 {
		return appendHead(nil, Negative, uint64(-1-v))
	}
	return appendHead(nil, Unsigned, uint64(v))
}

func appendFloat(v float64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(Simple)<<majorShift | infoLast}, math.Float64bits(v))
}

func appendHead(out []byte, major Major, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(out, byte(major)<<majorShift|infoLast), n)
}
