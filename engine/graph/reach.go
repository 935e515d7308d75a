package graph

import "slices"

// Dependencies returns the nodes that n needs directly, in author order, or none for an unknown
// node.
func (g *Graph[N, E]) Dependencies(n N) []N { return g.neighbours(n, g.out) }

// Dependents returns the nodes that need n directly, in author order.
func (g *Graph[N, E]) Dependents(n N) []N { return g.neighbours(n, g.in) }

func (g *Graph[N, E]) neighbours(n N, edges [][]half[E]) []N {
	i, ok := g.index[n]
	if !ok {
		return nil
	}
	var nodes []N
	for _, h := range edges[i] {
		nodes = append(nodes, g.nodes[h.node])
	}
	return slices.Compact(nodes) // parallel edges are next to each other
}

// TransitiveDependencies returns all nodes that n needs, directly or through others, in author
// order. n is among them only if it is part of a cycle.
func (g *Graph[N, E]) TransitiveDependencies(n N) []N {
	start, ok := g.index[n]
	if !ok {
		return nil
	}
	var nodes []N
	for i, reached := range reach(start, g.out) {
		if reached {
			nodes = append(nodes, g.nodes[i])
		}
	}
	return nodes
}

// reach marks the nodes that one or more edges lead to from start.
func reach[E any](start int, edges [][]half[E]) []bool {
	seen := make([]bool, len(edges))
	for todo := []int{start}; len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, h := range edges[i] {
			if !seen[h.node] {
				seen[h.node] = true
				todo = append(todo, h.node)
			}
		}
	}
	return seen
}
