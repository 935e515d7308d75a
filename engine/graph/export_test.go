package graph

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
