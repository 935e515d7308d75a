package graph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// UnknownNodeError is an edge one end of which was never added.
type UnknownNodeError[N cmp.Ordered, E any] struct {
	Node N // the end that is unknown
	Edge Edge[N, E]
}

// Error names the edge, its data and the unknown end.
func (e *UnknownNodeError[N, E]) Error() string {
	return fmt.Sprintf("%v -> %v%s: unknown node %v", e.Edge.From, e.Edge.To, origin(e.Edge.Data), e.Node)
}

// CycleError is one cycle, as short as there is through its first node.
type CycleError[N cmp.Ordered, E any] struct {
	// Path holds the edges in turn: each begins where the one before ended, and the
	// last ends where the first began. It is never empty.
	Path []Edge[N, E]
}

// Error prints the cycle as "cycle: a -> b (web.cue:12) -> a (db.cue:4)", each
// origin behind the node that its edge leads to.
func (e *CycleError[N, E]) Error() string {
	var b strings.Builder
	b.WriteString("cycle: ")
	for i, edge := range e.Path {
		if i == 0 {
			fmt.Fprint(&b, edge.From)
		}
		fmt.Fprintf(&b, " -> %v%s", edge.To, origin(edge.Data))
	}
	return b.String()
}

// Nodes returns the nodes of the cycle, each once, from the one written first.
func (e *CycleError[N, E]) Nodes() []N {
	nodes := make([]N, len(e.Path))
	for i, edge := range e.Path {
		nodes[i] = edge.From
	}
	return nodes
}

func origin(data any) string {
	if text := fmt.Sprint(data); text != "" {
		return " (" + text + ")"
	}
	return ""
}

// cycles reports one cycle for each group of nodes that need each other. waits holds
// how many dependencies of each node could not be ordered; zero rules the node out.
func (g *Graph[N, E]) cycles(waits []int) error {
	var errs []error
	known := make([]bool, len(g.nodes))
	for i := range g.nodes {
		if waits[i] == 0 || known[i] {
			continue
		}
		path := g.shortest(i)
		if path == nil {
			continue // it only leads into a cycle
		}
		errs = append(errs, &CycleError[N, E]{Path: path})
		down, up := reach(i, g.out), reach(i, g.in)
		for j := range known {
			known[j] = known[j] || down[j] && up[j]
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// shortest finds a shortest way from a node back to itself, breadth first.
func (g *Graph[N, E]) shortest(start int) []Edge[N, E] {
	type step struct {
		from int
		edge half[E]
	}
	came := make([]*step, len(g.nodes))
	for todo := []int{start}; len(todo) > 0; todo = todo[1:] {
		for _, h := range g.out[todo[0]] {
			if came[h.node] != nil {
				continue
			}
			came[h.node] = &step{todo[0], h}
			todo = append(todo, h.node)
		}
	}
	if came[start] == nil {
		return nil
	}
	var path []Edge[N, E]
	for at := start; len(path) == 0 || at != start; at = came[at].from {
		s := came[at]
		path = append(path, Edge[N, E]{g.nodes[s.from], g.nodes[at], s.edge.data})
	}
	slices.Reverse(path)
	return path
}
