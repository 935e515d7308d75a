package template

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Eval returns what a node is over some data. It errors with ErrFallback, and nothing else.
func (n *Node) Eval(data any) (any, error) { return NewEvaluation(data, 0).Eval(n) }

// An Evaluation evaluates nodes over some data. What several of them share it evaluates once.
type Evaluation struct {
	data any
	// stack has the arguments of calls, so that a call does not allocate. It begins in room.
	stack []any
	room  [16]any
	// shared are the values of shared nodes, by their slots.
	shared []any
	// elements is where the elements of the next lists go: lists are short, and there are many.
	elements []any
	// text is the JSON that is being written.
	text []byte
}

const (
	// someElements is how many elements of lists are allocated at once.
	someElements = 16
	// someText is how many bytes of JSON are allocated at first.
	someText = 512
)

// NewEvaluation returns an evaluation over some data of nodes of which some are shared, as Share
// returned.
func NewEvaluation(data any, shared int) *Evaluation {
	e := &Evaluation{data: data, shared: make([]any, shared)}
	e.stack = e.room[:0]
	return e
}

// Eval returns what a node is. It errors with ErrFallback, and nothing else.
func (e *Evaluation) Eval(n *Node) (any, error) {
	if n.slot == 0 || n.slot > len(e.shared) {
		return e.eval(n)
	}
	if v := e.shared[n.slot-1]; v != nil {
		return v, nil
	}
	v, err := e.eval(n)
	if err == nil {
		e.shared[n.slot-1] = v
	}
	return v, err
}

// True reports whether all nodes are true.
func (e *Evaluation) True(nodes []*Node) bool {
	for _, n := range nodes {
		if v, err := e.Eval(n); err != nil || v != true {
			return false
		}
	}
	return true
}

func (e *Evaluation) eval(n *Node) (any, error) {
	switch n.form {
	case constant:
		return n.value, nil
	case reference:
		return lookUp(e.data, n.path)
	case object:
		return e.object(n)
	case list:
		return e.list(n)
	case call:
		return e.call(n)
	case marshal:
		if n.name == "yaml.Marshal" {
			return e.yaml(n.args[0])
		}
		if e.text == nil {
			e.text = make([]byte, 0, someText)
		}
		begin := len(e.text) // there may be a marshal within a marshal
		err := e.marshal(n.args[0])
		out := string(e.text[begin:])
		e.text = e.text[:begin]
		if err != nil {
			return nil, err
		}
		return out, nil
	}
	return nil, ErrFallback
}

func (e *Evaluation) object(n *Node) (any, error) {
	out := make(map[string]any, len(n.keys))
	for i, key := range n.keys {
		v, err := e.Eval(n.args[i])
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}

func (e *Evaluation) list(n *Node) (any, error) {
	out := e.newList(len(n.args))
	for i, arg := range n.args {
		v, err := e.Eval(arg)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// newList returns a list of its own of some length.
func (e *Evaluation) newList(n int) []any {
	if n > len(e.elements) || n == 0 {
		if n >= someElements || n == 0 {
			return make([]any, n)
		}
		e.elements = make([]any, someElements)
	}
	out := e.elements[:n:n]
	e.elements = e.elements[n:]
	return out
}

func (e *Evaluation) call(n *Node) (any, error) {
	begin := len(e.stack)
	for _, arg := range n.args {
		v, err := e.Eval(arg)
		if err != nil {
			e.stack = e.stack[:begin]
			return nil, err
		}
		e.stack = append(e.stack, v)
	}
	out, err := n.op.eval(e.stack[begin:])
	e.stack = e.stack[:begin]
	return out, err
}

// lookUp returns what a path leads to. A path that leads nowhere has no answer: a template is for
// data that has all that its shape has.
func lookUp(data any, path []step) (any, error) {
	for _, s := range path {
		switch d := data.(type) {
		case map[string]any:
			v, ok := d[s.name]
			if !ok {
				return nil, ErrFallback
			}
			data = v
		case []any:
			if s.index < 0 || s.index >= len(d) {
				return nil, ErrFallback
			}
			data = d[s.index]
		default:
			return nil, ErrFallback
		}
	}
	if f, ok := data.(float64); ok {
		if n, ok := Integer(f); ok {
			return n, nil
		}
	}
	return data, nil
}

// marshal writes JSON with the fields of objects in the order of their nodes, as CUE does.
func (e *Evaluation) marshal(n *Node) error {
	switch {
	case n.form == object || n.form == constant && n.keys != nil:
		return e.marshalAll(n, '{', '}')
	case n.form == list || n.form == constant && n.args != nil:
		return e.marshalAll(n, '[', ']')
	}
	v, err := e.Eval(n)
	if err != nil {
		return err
	}
	e.text, err = appendJSON(e.text, v)
	return err
}

// appendJSON appends a scalar as JSON.
func appendJSON(to []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(to, "null"...), nil
	case bool:
		return strconv.AppendBool(to, v), nil
	case int64:
		return strconv.AppendInt(to, v, 10), nil
	case string:
		return appendText(to, v)
	}
	return to, ErrFallback
}

// appendText appends a text as JSON.
func appendText(to []byte, text string) ([]byte, error) {
	if isPlain(text) {
		return append(append(append(to, '"'), text...), '"'), nil
	}
	b := bytes.NewBuffer(to)
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return to, ErrFallback
	}
	b.Truncate(b.Len() - 1) // Encode ends with a new line.
	return b.Bytes(), nil
}

// isPlain reports whether JSON has a text as it is.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (e *Evaluation) marshalAll(n *Node, begin, end byte) (err error) {
	e.text = append(e.text, begin)
	for i, arg := range n.args {
		if i > 0 {
			e.text = append(e.text, ',')
		}
		if begin == '{' {
			if e.text, err = appendText(e.text, n.keys[i]); err != nil {
				return err
			}
			e.text = append(e.text, ':')
		}
		if err := e.marshal(arg); err != nil {
			return err
		}
	}
	e.text = append(e.text, end)
	return nil
}
