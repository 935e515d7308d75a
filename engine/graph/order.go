package graph

import (
	"errors"
	"slices"
)

// Order returns all nodes, dependencies first. Of the nodes that may come next, the one that
// was added first does, so a file that is already in order stays so. It errors if there are
// cycles, and joins one [*CycleError] for each.
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

// sort is Kahn's algorithm; the node that was added first is taken from the ready ones.
func (g *Graph[N, E]) sort() (order []int, err error) {
	waits := make([]int, len(g.nodes))
	var ready []int // ascending
	for i, needed := range g.out {
		if waits[i] = len(needed); waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		order = append(order, i)
		for _, h := range g.in[i] {
			if waits[h.node]--; waits[h.node] == 0 {
				at, _ := slices.BinarySearch(ready, h.node)
				ready = slices.Insert(ready, at, h.node)
			}
		}
	}
	if len(order) == len(g.nodes) {
		return order, nil
	}
	var errs []error
	for _, cycle := range g.Cycles() {
		errs = append(errs, cycle)
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, errors.Join(errs...)
}

// Cycles returns one cycle for each group of nodes that need each other, or none if the graph
// has an order.
func (g *Graph[N, E]) Cycles() []*CycleError[N, E] {
	var cycles []*CycleError[N, E]
	known := make([]bool, len(g.nodes))
	for i := range g.nodes {
		if known[i] {
			continue
		}
		path := g.shortest(i)
		if path == nil {
			continue
		}
		cycles = append(cycles, &CycleError[N, E]{Path: path})
		down, up := reach(i, g.out), reach(i, g.in)
		for j := range known {
			known[j] = known[j] || down[j] && up[j]
		}
	}
	return cycles
}

// shortest finds a shortest path from a node back to itself, breadth first.
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
