package template

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/apd/v3"
)

// An encoded is how a node is written as JSON: plain data, that one process makes and another one
// evaluates.
type encoded struct {
	// Value is a constant; integers are written without a point and floats with one.
	Value json.RawMessage `json:"v,omitempty"`
	Float *float64        `json:"f,omitempty"`
	Bytes *[]byte         `json:"b,omitempty"`
	// Decimal is a decimal as text.
	Decimal string    `json:"d,omitempty"`
	Path    *[]string `json:"p,omitempty"`
	Keys    *[]string `json:"k,omitempty"`
	List    bool      `json:"l,omitempty"`
	Call    string    `json:"c,omitempty"`
	Args    []*Node   `json:"a,omitempty"`
}

// MarshalJSON writes a node as JSON.
func (n *Node) MarshalJSON() ([]byte, error) {
	out := encoded{Args: n.args}
	switch {
	case n.form == reference:
		path := make([]string, len(n.path))
		for i, s := range n.path {
			path[i] = s.name
		}
		out.Path = &path
	case n.keys != nil:
		out.Keys = &n.keys
	case n.form == list || n.form == constant && n.args != nil:
		out.List = true
	case n.form == marshal:
		out.Call = n.name
	case n.form == call:
		out.Call = n.name
	default:
		return n.marshalConstant()
	}
	return json.Marshal(out)
}

func (n *Node) marshalConstant() ([]byte, error) {
	switch v := n.value.(type) {
	case float64:
		return json.Marshal(encoded{Float: &v})
	case []byte:
		return json.Marshal(encoded{Bytes: &v})
	case Decimal:
		return json.Marshal(encoded{Decimal: v.String()})
	case nil, bool, int64, string:
		value, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		return json.Marshal(encoded{Value: value})
	default:
		return nil, fmt.Errorf("a constant of type %T is not written", v)
	}
}

// UnmarshalJSON reads what MarshalJSON has written. It errors for anything that is no node, and
// for an operation that this version does not have.
func (n *Node) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var in encoded
	if err := decoder.Decode(&in); err != nil {
		return fmt.Errorf("reading a node: %w", err)
	}
	for _, arg := range in.Args {
		if arg == nil {
			return fmt.Errorf("reading a node: an argument is null")
		}
	}
	out, err := in.node()
	if err != nil {
		return fmt.Errorf("reading a node: %w", err)
	}
	*n = *out
	return nil
}

func (in *encoded) node() (*Node, error) {
	switch {
	case in.Path != nil:
		return Reference(*in.Path...), nil
	case in.Keys != nil:
		if len(*in.Keys) != len(in.Args) {
			return nil, fmt.Errorf("%d keys for %d values", len(*in.Keys), len(in.Args))
		}
		return Object(*in.Keys, in.Args), nil
	case in.List:
		return List(in.Args), nil
	case in.Call != "":
		return Call(in.Call, in.Args...)
	case in.Float != nil:
		return Constant(*in.Float), nil
	case in.Bytes != nil:
		return Constant(*in.Bytes), nil
	case in.Decimal != "":
		d, _, err := apd.NewFromString(in.Decimal)
		if err != nil || d.Form != apd.Finite {
			return nil, fmt.Errorf("%q is no decimal", in.Decimal)
		}
		return Constant(d), nil
	}
	return scalarNode(in.Value)
}

// scalarNode reads a constant that is null, a boolean, an integer or a text.
func scalarNode(text json.RawMessage) (*Node, error) {
	if len(text) == 0 {
		return Constant(nil), nil // null is left out
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil, bool, string:
		return Constant(v), nil
	case json.Number:
		i, err := v.Int64()
		return Constant(i), err
	}
	return nil, fmt.Errorf("%s is no scalar", text)
}
