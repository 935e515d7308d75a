package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// Graph is a directed graph over N whose edges carry an E, typically where the
// edge comes from ("web.cue:12"). The zero value is not usable; call [New].
type Graph[N cmp.Ordered, E any] struct {
	nodes []N
	index map[N]int
	// out[i] holds the edges of node i and in[i] those that end in it. Both are
	// kept sorted, so that the order of AddEdge calls cannot reach a result.
	out, in [][]half[E]
}

// half is one edge as seen from one of its ends.
type half[E any] struct {
	node int // the other end
	data E
	text string // how data prints: the tie-break between parallel edges
}

// Edge says that From needs To, and why.
type Edge[N cmp.Ordered, E any] struct {
	From, To N
	Data     E
}

// New returns an empty graph.
func New[N cmp.Ordered, E any]() *Graph[N, E] {
	return &Graph[N, E]{index: map[N]int{}}
}

// AddNode adds nodes in author order. A node that is there already keeps its place.
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

// AddEdge records that from needs to. Both must have been added; an edge to an
// unknown node is an [*UnknownNodeError] and leaves the graph as it was. An edge from
// a node to itself is accepted here and reported as a cycle by [Graph.Order].
// Parallel edges are kept, each with its data.
func (g *Graph[N, E]) AddEdge(from, to N, data E) error {
	f, okFrom := g.index[from]
	t, okTo := g.index[to]
	switch {
	case !okFrom:
		return &UnknownNodeError[N, E]{Node: from, Edge: Edge[N, E]{from, to, data}}
	case !okTo:
		return &UnknownNodeError[N, E]{Node: to, Edge: Edge[N, E]{from, to, data}}
	}
	text := fmt.Sprint(data)
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

// Edges returns all edges, by author order of From, then of To.
func (g *Graph[N, E]) Edges() []Edge[N, E] {
	var all []Edge[N, E]
	for i, from := range g.nodes {
		for _, h := range g.out[i] {
			all = append(all, Edge[N, E]{from, g.nodes[h.node], h.data})
		}
	}
	return all
}

// Between returns the data of the edges from one node to another.
func (g *Graph[N, E]) Between(from, to N) []E {
	f, okFrom := g.index[from]
	t, okTo := g.index[to]
	if !okFrom || !okTo {
		return nil
	}
	var data []E
	for _, h := range g.out[f] {
		if h.node == t {
			data = append(data, h.data)
		}
	}
	return data
}
