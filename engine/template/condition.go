package template

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// A condition is a node whose value is part of a shape, whatever values it is made of: what a package says
// has another form if it is another one.
type condition struct {
	node *Node
	// text is the node as JSON, which only equal nodes have.
	text string
}

// WithCondition returns pins with one more condition, and whether it was not among them. It errors
// if the node cannot be written as JSON.
func (p Pins) WithCondition(n *Node) (Pins, bool, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return p, false, fmt.Errorf("a condition of a shape: %w", err)
	}
	return p.withCondition(string(text))
}

// withCondition adds a condition by its text. Its node is made anew: others are shared in templates.
func (p Pins) withCondition(text string) (Pins, bool, error) {
	at, found := slices.BinarySearchFunc(p.conditions, text, func(c condition, text string) int { return cmp.Compare(c.text, text) })
	if found {
		return p, false, nil
	}
	n := &Node{}
	if err := json.Unmarshal([]byte(text), n); err != nil {
		return p, false, fmt.Errorf("a condition of a shape: %w", err)
	}
	p.conditions = slices.Insert(slices.Clone(p.conditions), at, condition{n, text})
	return p, true, nil
}

// Union returns the pins that any of two have, and whether the other ones have more.
func (p Pins) Union(other Pins) (Pins, bool) {
	more := false
	for _, path := range other.Paths() {
		var added bool
		p, added = p.With(path...)
		more = more || added
	}
	for _, c := range other.conditions {
		if out, added, err := p.withCondition(c.text); err == nil && added {
			p, more = out, true
		}
	}
	return p, more
}

// Equal reports whether two pins are the same.
func (p Pins) Equal(other Pins) bool {
	_, more := p.Union(other)
	_, less := other.Union(p)
	return !more && !less
}

// Conditions returns the conditions that are part of the shape, in a fixed order.
func (p Pins) Conditions() []*Node {
	out := make([]*Node, len(p.conditions))
	for i, c := range p.conditions {
		out[i] = c.node
	}
	return out
}

// writtenPins is how pins are written.
type writtenPins struct {
	Paths      [][]string `json:"paths,omitempty"`
	Conditions []string   `json:"conditions,omitempty"`
}

// MarshalBinary writes pins for another process.
func (p Pins) MarshalBinary() ([]byte, error) {
	out := writtenPins{Paths: p.Paths()}
	for _, c := range p.conditions {
		out.Conditions = append(out.Conditions, c.text)
	}
	return json.Marshal(out)
}

// UnmarshalBinary reads what MarshalBinary has written.
func (p *Pins) UnmarshalBinary(text []byte) error {
	var in writtenPins
	if err := json.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("reading pins: %w", err)
	}
	*p = Pins{}
	for _, path := range in.Paths {
		*p, _ = p.With(path...)
	}
	for _, text := range in.Conditions {
		var err error
		if *p, _, err = p.withCondition(text); err != nil {
			return err
		}
	}
	return nil
}

// Outcomes adds what the conditions of pins are over some data.
func (s *Shaper) Outcomes(data any, pins Pins) {
	if len(pins.conditions) == 0 {
		return
	}
	e := NewEvaluation(data, 0)
	for _, c := range pins.conditions {
		switch v, err := e.Eval(c.node); {
		case err == nil && v == true:
			s.text = append(s.text, 't')
		case err == nil && v == false:
			s.text = append(s.text, 'f')
		default:
			s.text = append(s.text, '?')
		}
	}
}
