package template

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// ErrFallback says that a node has no answer for some data, and that CUE has to be asked.
var ErrFallback = errors.New("no answer without CUE")

// A form is what a node does.
type form string

const (
	constant  form = "constant"
	reference form = "reference"
	object    form = "object"
	list      form = "list"
	call      form = "call"
	marshal   form = "marshal"
)

// A Node is an expression over data. It is immutable, and may be part of several trees.
//
// The data of an evaluation, and every value that a node returns, is of the types that
// unstructured content has: nil, bool, int64, float64, string, []any and map[string]any; bytes are
// []byte, and a number that is calculated with may be a Decimal. What a node returns may be shared with other evaluations, and must not be changed.
type Node struct {
	form form
	// value is what a constant is. A constant may have keys and args as well: those of the
	// object or the list that it was made of, whose order a marshal goes by.
	value any
	path  []step
	keys  []string
	args  []*Node
	op    *operation
	name  string
	// slot is where an evaluation keeps the value if the node is shared, counted from 1.
	slot int
}

// A step is the name of a field or the index of an element.
type step struct {
	name  string
	index int
}

// Constant returns a node that is a value, whatever the data.
func Constant(v any) *Node { return &Node{form: constant, value: v} }

// Reference returns a node that is what a path through the data leads to: names of fields, and
// indices of elements in decimal digits.
func Reference(path ...string) *Node {
	steps := make([]step, len(path))
	for i, name := range path {
		index, err := strconv.Atoi(name)
		if err != nil {
			index = -1
		}
		steps[i] = step{name, index}
	}
	return &Node{form: reference, path: steps}
}

// Object returns a node that is a map. The order of the keys is that in which CUE has the fields.
func Object(keys []string, values []*Node) *Node {
	n := &Node{form: object, keys: append([]string{}, keys...), args: values}
	if allConstant(values) {
		out := make(map[string]any, len(keys))
		for i, key := range keys {
			out[key] = values[i].value
		}
		n.form, n.value = constant, out
	}
	return n
}

// List returns a node that is a list.
func List(elements []*Node) *Node {
	n := &Node{form: list, args: append([]*Node{}, elements...)}
	if allConstant(elements) {
		out := make([]any, len(elements))
		for i, e := range elements {
			out[i] = e.value
		}
		n.form, n.value = constant, out
	}
	return n
}

// Call returns a node that is the result of an operation of CUE: an operator such as "+", or a
// function of its standard library such as "strings.ToLower". It errors if the operation is not known, or
// not with these arguments, and if it has no answer for arguments that are all constant.
func Call(name string, args ...*Node) (*Node, error) {
	if len(args) == 1 && (name == "json.Marshal" || name == "yaml.Marshal") {
		return &Node{form: marshal, name: name, args: args}, nil
	}
	op, ok := operations[name]
	if !ok {
		return nil, fmt.Errorf("operation %s: not known", name)
	}
	if op.arity >= 0 && op.arity != len(args) {
		return nil, fmt.Errorf("operation %s: %d arguments, want %d", name, len(args), op.arity)
	}
	if op.prepare != nil {
		prepared, err := op.prepare(args)
		if err != nil {
			return nil, fmt.Errorf("operation %s: %w", name, err)
		}
		op = &operation{arity: op.arity, eval: prepared}
	}
	n := &Node{form: call, name: name, op: op, args: args}
	if !allConstant(args) {
		return n, nil
	}
	v, err := n.Eval(nil)
	if err != nil {
		return nil, fmt.Errorf("operation %s: %w", name, err)
	}
	return Constant(v), nil
}

// Static reports whether a node is the same for all data, and returns what it is then.
func (n *Node) Static() (value any, ok bool) { return n.value, n.form == constant }

func allConstant(nodes []*Node) bool {
	return !slices.ContainsFunc(nodes, func(n *Node) bool { return n.form != constant })
}

// References returns the paths that a node and all within it refer to.
func (n *Node) References() [][]string {
	if n.form == reference {
		path := make([]string, len(n.path))
		for i, s := range n.path {
			path[i] = s.name
		}
		return [][]string{path}
	}
	var out [][]string
	for _, arg := range n.args {
		out = append(out, arg.References()...)
	}
	return out
}

// Operations returns the names of what a node and all within it call.
func (n *Node) Operations() []string {
	var out []string
	if n.form == call {
		out = append(out, n.name)
	}
	for _, arg := range n.args {
		out = append(out, arg.Operations()...)
	}
	return out
}
