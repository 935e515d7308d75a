package graph

// Dependencies returns the nodes that n needs directly, in author order; none for
// an unknown node.
func (g *Graph[N, E]) Dependencies(n N) []N { return g.near(n, g.out) }

// Dependents returns the nodes that need n directly, in author order.
func (g *Graph[N, E]) Dependents(n N) []N { return g.near(n, g.in) }

// TransitiveDependencies returns all nodes that n needs, directly or through
// others, in author order. n is among them only if it is part of a cycle.
func (g *Graph[N, E]) TransitiveDependencies(n N) []N {
	i, ok := g.index[n]
	if !ok {
		return nil
	}
	return g.marked(reach(i, g.out))
}

func (g *Graph[N, E]) near(n N, edges [][]half[E]) []N {
	i, ok := g.index[n]
	if !ok {
		return nil
	}
	seen := make([]bool, len(g.nodes))
	for _, h := range edges[i] {
		seen[h.node] = true
	}
	return g.marked(seen)
}

// reach marks what can be reached from start over one edge or more.
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

func (g *Graph[N, E]) marked(seen []bool) []N {
	var nodes []N
	for i, n := range g.nodes {
		if seen[i] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
