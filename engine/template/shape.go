package template

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// A Key identifies a shape.
type Key [sha256.Size]byte

// Anywhere stands in a path for the index of any element of a list.
const Anywhere = "[]"

// Pins are the places of some data whose values are part of its shape, because what a package says
// has another form for another value. The zero value has none. Pins are immutable.
type Pins struct {
	all    bool
	fields map[string]Pins
	// conditions are sorted by their texts.
	conditions []condition
}

// With returns pins with one more path, and whether it was not among them. Indices of elements
// count for all elements.
func (p Pins) With(path ...string) (Pins, bool) {
	if p.all {
		return p, false
	}
	if len(path) == 0 {
		return Pins{all: true}, true
	}
	name := path[0]
	if _, err := strconv.Atoi(name); err == nil {
		name = Anywhere
	}
	inner, added := p.fields[name].With(path[1:]...)
	if !added {
		return p, false
	}
	out := Pins{fields: maps.Clone(p.fields), conditions: p.conditions}
	if out.fields == nil {
		out.fields = map[string]Pins{}
	}
	out.fields[name] = inner
	return out, true
}

// Has reports whether the value at a path is part of the shape.
func (p Pins) Has(path ...string) bool {
	for _, name := range path {
		if p.all {
			return true
		}
		if _, err := strconv.Atoi(name); err == nil {
			name = Anywhere
		}
		p = p.fields[name]
	}
	return p.all
}

// Below returns the pins below a field, or below any element for Anywhere. A field whose name is a number has
// those of elements: a path does not tell which of both it means.
func (p Pins) Below(name string) Pins {
	if p.all || len(p.fields) == 0 {
		return p
	}
	if elements, ok := p.fields[Anywhere]; ok {
		if _, err := strconv.Atoi(name); err == nil {
			return elements
		}
	}
	return p.fields[name]
}

// Paths returns the paths of the pins, sorted.
func (p Pins) Paths() [][]string {
	if p.all {
		return [][]string{{}}
	}
	var out [][]string
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		for _, below := range p.fields[name].Paths() {
			out = append(out, append([]string{name}, below...))
		}
	}
	return out
}

// Shape returns the shape of some data: which fields and elements there are and of which kind
// each is, and of those that are pinned the value. Booleans, null and floats are always with
// their value: there are few of them.
func Shape(data any, pins Pins) Key {
	return ShapeOf(func(s *Shaper) {
		s.Value(data, pins)
		s.Outcomes(data, pins)
	})
}

// Everything are the pins of everything.
var Everything = Pins{all: true}

// ShapeOf returns the shape of what is written to a Shaper, so that data of which only a part counts need no copy.
func ShapeOf(write func(*Shaper)) Key {
	var room struct { // in one allocation, for most
		Shaper

		text [1024]byte
		keys [16]string
	}
	room.Shaper = Shaper{room.text[:0], room.keys[:0]}
	write(&room.Shaper)
	return sha256.Sum256(room.Shaper.text)
}

// A Shaper writes a shape as text that no other shape has: all that is of any length follows its
// length, or has an end.
type Shaper struct {
	text []byte
	keys []string
}

// Value writes all of some data. A float that is an integer counts as one.
func (s *Shaper) Value(v any, pins Pins) {
	switch v := v.(type) {
	case map[string]any:
		s.Begin()
		begin := len(s.keys)
		for key := range v {
			s.keys = append(s.keys, key)
		}
		keys := s.keys[begin:]
		slices.Sort(keys)
		for _, key := range keys {
			s.Field(key)
			s.Value(v[key], pins.Below(key))
		}
		s.keys = s.keys[:begin]
		s.End()
	case []any:
		s.Elements(len(v))
		below := pins.Below(Anywhere)
		for _, e := range v {
			s.Value(e, below)
		}
	case string:
		s.string(v, pins)
	case int64:
		s.integer(v, pins)
	case float64:
		if n, ok := Integer(v); ok {
			s.integer(n, pins)
			return
		}
		s.text = binary.BigEndian.AppendUint64(append(s.text, 'F'), math.Float64bits(v))
	case bool:
		s.text = strconv.AppendBool(s.text, v)
	case nil:
		s.text = append(s.text, 'n')
	default:
		s.other(reflect.ValueOf(v))
	}
}

// other writes all of some data that is no unstructured content. It counts with its type and its value.
func (s *Shaper) other(v reflect.Value) {
	s.tagged('?', v.Type().String())
	if v.Kind() == reflect.Map {
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b)) })
		s.length('m', len(keys))
		for _, key := range keys {
			s.tagged(':', fmt.Sprintf("%#v", key))
			s.Value(v.MapIndex(key).Interface(), Everything)
		}
		return
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		s.length('l', v.Len())
		for i := range v.Len() {
			s.Value(v.Index(i).Interface(), Everything)
		}
		return
	}
	s.tagged('=', fmt.Sprintf("%#v", v))
}

// tagged writes a text behind its length.
func (s *Shaper) tagged(kind byte, text string) {
	s.length(kind, len(text))
	s.text = append(s.text, text...)
}

// Begin begins an object. The fields follow, sorted, each with Field and its value, and then End.
func (s *Shaper) Begin() { s.text = append(s.text, '{') }

// Field begins a field of an object.
func (s *Shaper) Field(name string) { s.tagged(':', name) }

// End ends an object.
func (s *Shaper) End() { s.text = append(s.text, '}') }

// Elements begins a list of a length. The values of the elements follow.
func (s *Shaper) Elements(n int) { s.length('[', n) }

func (s *Shaper) string(v string, pins Pins) {
	if !pins.all {
		s.text = append(s.text, 's')
		return
	}
	s.tagged('S', v)
}

func (s *Shaper) integer(v int64, pins Pins) {
	if !pins.all {
		s.text = append(s.text, 'i')
		return
	}
	s.text = binary.BigEndian.AppendUint64(append(s.text, 'I'), uint64(v)) //nolint:gosec // any bijection will do
}

func (s *Shaper) length(kind byte, n int) {
	s.text = binary.AppendUvarint(append(s.text, kind), uint64(n)) //nolint:gosec // it is a length
}

// Integer returns a float as an integer, if it is one. JSON does not distinguish 3.0 and 3, but CUE does, and
// encoding/json decodes every number as a float.
func Integer(f float64) (n int64, ok bool) {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), true
	}
	return 0, false
}
