package template

import (
	"fmt"
	"strings"
)

// Share makes equal parts of nodes one node, and returns how many there are that several have, for
// NewEvaluation. It is for nodes that nobody else has.
func Share(nodes []**Node) int {
	s := sharer{known: map[string]*Node{}, ids: map[*Node]int{}}
	for _, n := range nodes {
		if *n != nil {
			*n = s.unique(*n)
		}
	}
	return s.slots
}

// A sharer finds equal nodes.
type sharer struct {
	known map[string]*Node
	ids   map[*Node]int
	slots int
}

// unique returns the one node that is equal to another one.
func (s *sharer) unique(n *Node) *Node {
	if n.form == constant || n.form == reference {
		return n // as cheap as a slot
	}
	for i, arg := range n.args {
		n.args[i] = s.unique(arg)
	}
	key := s.key(n)
	one, known := s.known[key]
	if !known {
		s.known[key], s.ids[n] = n, len(s.ids)
		n.slot = 0
		return n
	}
	if one.slot == 0 {
		s.slots++
		one.slot = s.slots
	}
	return one
}

// key returns a text that only equal nodes have.
func (s *sharer) key(n *Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %q", n.form, n.name, n.keys)
	for _, arg := range n.args {
		s.describe(&b, arg)
	}
	return b.String()
}

// describe writes what only equal nodes have, constants with the order of their fields.
func (s *sharer) describe(b *strings.Builder, n *Node) {
	switch {
	case n.form == reference:
		fmt.Fprintf(b, " %q", n.References())
	case n.form != constant:
		fmt.Fprintf(b, " #%d", s.ids[n])
	case n.args == nil && n.keys == nil:
		fmt.Fprintf(b, " %#v", n.value)
	default:
		fmt.Fprintf(b, " (%q", n.keys)
		for _, arg := range n.args {
			s.describe(b, arg)
		}
		b.WriteString(")")
	}
}
