package layout_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/graph/layout"
	"operetta.dev/test/machine"
)

func boxes(n int) []layout.Node {
	out := make([]layout.Node, n)
	for i := range out {
		out[i] = layout.Node{Width: 100 + float64(i%3)*20, Height: 40 + float64(i%4)*10}
	}
	return out
}

// random returns edges of a graph without cycles.
func random(r *rand.Rand, nodes, edges int) []layout.Edge {
	var out []layout.Edge
	for range edges {
		if a, b := r.IntN(nodes), r.IntN(nodes); a != b {
			out = append(out, layout.Edge{From: min(a, b), To: max(a, b), Class: r.IntN(3)})
		}
	}
	return out
}

// check checks what holds for each layout of a graph without cycles.
func check(t *testing.T, nodes []layout.Node, edges []layout.Edge, l layout.Layout) {
	t.Helper()
	for i, n := range nodes {
		at := l.Nodes[i]
		if at.X < -0.01 || at.Y < -0.01 || at.X+n.Width > l.Width+0.01 || at.Y+n.Height > l.Height+0.01 {
			t.Errorf("box %d at %v is outside of %gx%g", i, at, l.Width, l.Height)
		}
		for j := range i {
			other := l.Nodes[j]
			if at.X < other.X+nodes[j].Width && other.X < at.X+n.Width && at.Y < other.Y+nodes[j].Height && other.Y < at.Y+n.Height {
				t.Errorf("boxes %d and %d overlap: %v and %v", i, j, at, other)
			}
		}
	}
	for i, e := range edges {
		points := l.Edges[i]
		if len(points) < 2 {
			t.Errorf("edge %v is not drawn", e)
			continue
		}
		first, last := points[0], points[len(points)-1]
		if first.Y != l.Nodes[e.From].Y+nodes[e.From].Height || last.Y != l.Nodes[e.To].Y || last.X <= l.Nodes[e.To].X || last.X >= l.Nodes[e.To].X+nodes[e.To].Width {
			t.Errorf("edge %v leads from %v to %v, and not from a box to a box", e, first, last)
		}
		for k := 1; k < len(points); k++ {
			if points[k].Y < points[k-1].Y {
				t.Errorf("edge %v leads upwards", e)
			}
		}
	}
}

func TestBoxesDoNotOverlapAndEdgesLeadDownwards(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		nodes int
		edges []layout.Edge
	}{
		"none":                       {0, nil},
		"one":                        {1, nil},
		"without edges":              {30, nil},
		"a chain":                    {5, []layout.Edge{{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {3, 4, 0}}},
		"a long edge beside a chain": {4, []layout.Edge{{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {0, 3, 1}}},
		"two edges of two kinds":     {2, []layout.Edge{{0, 1, 0}, {0, 1, 1}}},
		"against the author's order": {3, []layout.Edge{{2, 1, 0}, {1, 0, 0}}},
		"many of one":                {40, fan(40)},
		"random":                     {60, random(rand.New(rand.NewPCG(1, 2)), 60, 120)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := boxes(row.nodes)
			l := layout.Place(nodes, row.edges)
			check(t, nodes, row.edges, l)
			if diff := cmp.Diff(l, layout.Place(nodes, row.edges)); diff != "" {
				t.Errorf("the same graph has another layout:\n%s", diff)
			}
		})
	}
}

func fan(n int) []layout.Edge {
	var out []layout.Edge
	for i := 1; i < n; i++ {
		out = append(out, layout.Edge{From: 0, To: i})
	}
	return out
}

func TestOrderingRemovesACrossing(t *testing.T) {
	t.Parallel()
	// a and b stand above d and c: in the order of the list, their edges would cross.
	l := layout.Place(boxes(4), []layout.Edge{{0, 3, 0}, {1, 2, 0}})
	if (l.Nodes[0].X < l.Nodes[1].X) != (l.Nodes[3].X < l.Nodes[2].X) {
		t.Errorf("the edges cross: %v", l.Nodes)
	}
}

func TestACycleIsDrawnWithoutTheEdgesThatCloseIt(t *testing.T) {
	t.Parallel()
	l := layout.Place(boxes(3), []layout.Edge{{0, 1, 0}, {1, 2, 0}, {2, 0, 0}, {1, 1, 0}, {7, 0, 0}})
	drawn := 0
	for _, points := range l.Edges {
		if len(points) > 0 {
			drawn++
		}
	}
	if drawn != 2 {
		t.Errorf("%d edges are drawn: %v", drawn, l.Edges)
	}
}

func TestALargeGraphTakesBoundedTimeAndSpace(t *testing.T) {
	t.Parallel()
	const many = 1000
	for name, edges := range map[string][]layout.Edge{
		"all need one":    fan(many),
		"random":          random(rand.New(rand.NewPCG(3, 4)), many, 3*many),
		"without an edge": nil,
		"each needs the next": func() (out []layout.Edge) {
			for i := 1; i < many; i++ {
				out = append(out, layout.Edge{From: i - 1, To: i}, layout.Edge{From: 0, To: i, Class: 1})
			}
			return out
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			l := layout.Place(boxes(many), edges)
			took := time.Since(began)
			t.Logf("%s for %gx%g", took, l.Width, l.Height)
			if took > machine.Patience {
				t.Errorf("it took %s", took)
			}
			// A chain is as high as it is long.
			if l.Width > 25_000 || l.Height > 200_000 {
				t.Errorf("it is %gx%g", l.Width, l.Height)
			}
		})
	}
}
