package graph_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"operetta.dev/engine/graph"
)

// FuzzGraph builds a graph of up to 16 nodes from bytes, two per edge, and checks what
// must hold for every graph.
func FuzzGraph(f *testing.F) {
	f.Add(uint8(4), []byte{0, 1, 1, 2, 2, 3})
	f.Add(uint8(3), []byte{0, 1, 1, 0, 2, 2})
	f.Fuzz(func(t *testing.T, size uint8, pairs []byte) {
		n := int(size%16) + 1
		g := graph.New[int, int]()
		for i := range n {
			g.AddNode(i)
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			if err := g.AddEdge(int(pairs[i])%n, int(pairs[i+1])%n, i); err != nil {
				t.Fatal(err)
			}
		}
		order, err := g.Order()
		if err != nil {
			checkCycle(t, g, err)
			return
		}
		checkOrder(t, g, order)
		tree, err := g.Tree(nil)
		if err != nil || strings.Count(tree, "\n") != n {
			t.Fatalf("every node has one line: %v\n%s", err, tree)
		}
	})
}

// checkCycle demands that the reported path is a closed way over edges of the graph.
func checkCycle(t *testing.T, g *graph.Graph[int, int], err error) {
	t.Helper()
	var cycle *graph.CycleError[int, int]
	if !errors.As(err, &cycle) {
		t.Fatalf("%T is no CycleError", err)
	}
	at := cycle.Path[len(cycle.Path)-1].To
	for _, e := range cycle.Path {
		if e.From != at || !slices.Contains(g.Edges(), e) {
			t.Fatalf("broken path: %v", err)
		}
		at = e.To
	}
}

func checkOrder(t *testing.T, g *graph.Graph[int, int], order []int) {
	t.Helper()
	place := map[int]int{}
	for at, n := range order {
		place[n] = at
	}
	if len(place) != g.Len() {
		t.Fatalf("order %v does not hold each of %d nodes once", order, g.Len())
	}
	for _, e := range g.Edges() {
		if place[e.From] <= place[e.To] {
			t.Fatalf("%d needs %d: order %v", e.From, e.To, order)
		}
	}
}
