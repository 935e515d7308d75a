package graph

import "container/heap"

// Order returns all nodes, dependencies first. Of the nodes that may come next, the
// one that the author wrote first does, so a file that is already in order stays so.
// If there are cycles, the error joins one [*CycleError] for each.
func (g *Graph[N, E]) Order() ([]N, error) {
	order, err := g.sort()
	if err != nil {
		return nil, err
	}
	nodes := make([]N, len(order))
	for at, i := range order {
		nodes[at] = g.nodes[i]
	}
	return nodes, nil
}

// sort is Kahn's algorithm with the author's order deciding between ready nodes.
func (g *Graph[N, E]) sort() (order []int, err error) {
	waits := make([]int, len(g.nodes))
	ready := &lowest{}
	for i := range g.nodes {
		waits[i] = len(g.out[i])
		if waits[i] == 0 {
			heap.Push(ready, i)
		}
	}
	for ready.Len() > 0 {
		i := heap.Pop(ready).(int) //nolint:forcetypeassert // container/heap returns what was pushed
		order = append(order, i)
		for _, h := range g.in[i] {
			if waits[h.node]--; waits[h.node] == 0 {
				heap.Push(ready, h.node)
			}
		}
	}
	if len(order) < len(g.nodes) {
		return nil, g.cycles(waits)
	}
	return order, nil
}

// lowest is a heap of node positions.
type lowest []int

func (l lowest) Len() int           { return len(l) }
func (l lowest) Less(i, j int) bool { return l[i] < l[j] }
func (l lowest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lowest) Push(x any)        { *l = append(*l, x.(int)) } //nolint:forcetypeassert // sort pushes nothing else
func (l *lowest) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	*l = (*l)[:last]
	return x
}
