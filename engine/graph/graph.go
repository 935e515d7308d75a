package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// A Graph is a directed graph of nodes N. Each of its edges carries an E, typically the position
// at which it is written ("web.cue:12"). The zero value is not usable; call [New].
type Graph[N cmp.Ordered, E any] struct {
	nodes []N
	index map[N]int
	// out[i] holds the edges of node i, and in[i] those that end in it. Both are sorted, so
	// that no result depends on the order of AddEdge calls.
	out, in [][]half[E]
}

// half is an edge as seen from one of its ends.
type half[E any] struct {
	node int // the other end
	data E
	text string // data as text, which orders parallel edges
}

// An Edge says that From needs To. Data is typically where that is written.
type Edge[N cmp.Ordered, E any] struct {
	From, To N
	Data     E
}

// New returns an empty graph.
func New[N cmp.Ordered, E any]() *Graph[N, E] {
	return &Graph[N, E]{index: map[N]int{}}
}

// AddNode adds nodes in author order. A node that was added before keeps its place.
func (g *Graph[N, E]) AddNode(nodes ...N) {
	for _, n := range nodes {
		if g.Has(n) {
			continue
		}
		g.index[n] = len(g.nodes)
		g.nodes = append(g.nodes, n)
		g.out = append(g.out, nil)
		g.in = append(g.in, nil)
	}
}

// AddEdge adds an edge: from needs to. It errors, and leaves the graph as it was, if one of them
// was not added. An edge from a node to itself is accepted, and is a cycle. Parallel edges are
// kept, each with its data.
func (g *Graph[N, E]) AddEdge(from, to N, data E) error {
	f, okFrom := g.index[from]
	t, okTo := g.index[to]
	text := fmt.Sprint(data)
	switch {
	case !okFrom:
		return fmt.Errorf("%v -> %v%s: unknown node %v", from, to, origin(data), from)
	case !okTo:
		return fmt.Errorf("%v -> %v%s: unknown node %v", from, to, origin(data), to)
	}
	g.out[f] = insert(g.out[f], half[E]{t, data, text})
	g.in[t] = insert(g.in[t], half[E]{f, data, text})
	return nil
}

func insert[E any](edges []half[E], e half[E]) []half[E] {
	at, _ := slices.BinarySearchFunc(edges, e, func(a, b half[E]) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.text, b.text))
	})
	return slices.Insert(edges, at, e)
}

// Len returns the number of nodes.
func (g *Graph[N, E]) Len() int { return len(g.nodes) }

// Has reports whether n was added.
func (g *Graph[N, E]) Has(n N) bool {
	_, ok := g.index[n]
	return ok
}

// Nodes returns all nodes in author order.
func (g *Graph[N, E]) Nodes() []N { return slices.Clone(g.nodes) }
