package graph_test

import (
	"errors"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/graph"
)

type edge = graph.Edge[string, string]

// build takes nodes as one string and edges as "from>to@origin".
func build(t testing.TB, nodes string, edges ...string) *graph.Graph[string, string] {
	t.Helper()
	g := graph.New[string, string]()
	g.AddNode(strings.Fields(nodes)...)
	for _, e := range edges {
		ends, origin, _ := strings.Cut(e, "@")
		from, to, _ := strings.Cut(ends, ">")
		if err := g.AddEdge(from, to, origin); err != nil {
			t.Fatalf("AddEdge(%s): %v", e, err)
		}
	}
	return g
}

// webShop is the example of most tests: web needs everything, cache needs db.
func webShop(t testing.TB) *graph.Graph[string, string] {
	t.Helper()
	return build(t, "web config db cache",
		"web>config@web.cue:3", "web>db@web.cue:4", "web>cache@web.cue:5", "cache>db@cache.cue:2")
}

func TestOrderPutsDependenciesFirst(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		nodes  string
		edges  []string
		order  []string
	}{
		"NothingToOrder": {
			reason: "an empty graph has an empty order, not an error",
		},
		"AuthorOrderIsKeptWithoutEdges": {
			reason: "names never decide while the author's order can",
			nodes:  "c a b",
			order:  []string{"c", "a", "b"},
		},
		"AChainWrittenBackwards": {
			reason: "dependencies come first however late they are written",
			nodes:  "c b a",
			edges:  []string{"c>b", "b>a"},
			order:  []string{"a", "b", "c"},
		},
		"AnOrderedFileStaysAsItIs": {
			reason: "a node that is ready is not moved behind others of its layer",
			nodes:  "a b c d",
			edges:  []string{"b>a", "d>c"},
			order:  []string{"a", "b", "c", "d"},
		},
		"ADiamondWithALongSide": {
			reason: "a node's layer is that of its longest chain",
			nodes:  "top left right below bottom",
			edges:  []string{"top>left", "top>right", "left>bottom", "right>below", "below>bottom"},
			order:  []string{"bottom", "left", "below", "right", "top"},
		},
		"ParallelEdgesCountOnce": {
			reason: "the same dependency written and inferred is one dependency",
			nodes:  "b a",
			edges:  []string{"b>a@dependsOn", "b>a@reference"},
			order:  []string{"a", "b"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := build(t, c.nodes, c.edges...)
			order, err := g.Order()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.order, order, equateEmpty); diff != "" {
				t.Errorf("%s\norder (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// equateEmpty makes nil and empty slices alike.
var equateEmpty = cmp.FilterValues(func(a, b []string) bool { return len(a) == 0 && len(b) == 0 },
	cmp.Comparer(func(_, _ []string) bool { return true }))

func TestOrderReportsEveryCycleWithItsOrigins(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		nodes  string
		edges  []string
		want   string
		path   []edge // of the first cycle
	}{
		"OfThreeNodes": {
			reason: "the whole path is shown, and where each edge was written",
			nodes:  "a b c",
			edges:  []string{"a>b@web.cue:12", "b>c@db.cue:4", "c>a@c.cue:1"},
			want:   "cycle: a -> b (web.cue:12) -> c (db.cue:4) -> a (c.cue:1)",
			path:   []edge{{"a", "b", "web.cue:12"}, {"b", "c", "db.cue:4"}, {"c", "a", "c.cue:1"}},
		},
		"OfOneNode": {
			reason: "a node that needs itself is a cycle",
			nodes:  "a",
			edges:  []string{"a>a@a.cue:1"},
			want:   "cycle: a -> a (a.cue:1)",
			path:   []edge{{"a", "a", "a.cue:1"}},
		},
		"WithoutOrigins": {
			reason: "an edge whose data prints as nothing has no brackets",
			nodes:  "a b",
			edges:  []string{"a>b", "b>a"},
			want:   "cycle: a -> b -> a",
			path:   []edge{{"a", "b", ""}, {"b", "a", ""}},
		},
		"WithNodesThatOnlyLeadIntoIt": {
			reason: "the one who has to look at it must not be sent to innocent nodes",
			nodes:  "before a b after",
			edges:  []string{"before>a", "a>b", "b>a", "b>after"},
			want:   "cycle: a -> b -> a",
			path:   []edge{{"a", "b", ""}, {"b", "a", ""}},
		},
		"TheShortestIsShown": {
			reason: "of entangled cycles the shortest one is the easiest to understand",
			nodes:  "a b c",
			edges:  []string{"a>b", "b>c", "c>a", "b>a"},
			want:   "cycle: a -> b -> a",
			path:   []edge{{"a", "b", ""}, {"b", "a", ""}},
		},
		"SeveralAtOnce": {
			reason: "independent cycles are reported together, not one per attempt",
			nodes:  "a b c d",
			edges:  []string{"d>c", "c>d", "b>a", "a>b"},
			want:   "cycle: a -> b -> a\ncycle: c -> d -> c",
			path:   []edge{{"a", "b", ""}, {"b", "a", ""}},
		},
		"ParallelEdges": {
			reason: "of parallel edges the one that prints first is shown",
			nodes:  "a",
			edges:  []string{"a>a@z.cue:1", "a>a@b.cue:1"},
			want:   "cycle: a -> a (b.cue:1)",
			path:   []edge{{"a", "a", "b.cue:1"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := build(t, c.nodes, c.edges...)
			_, err := g.Order()
			if err == nil || err.Error() != c.want {
				t.Fatalf("%s\nwant %s\ngot  %v", c.reason, c.want, err)
			}
			var cycle *graph.CycleError[string, string]
			if !errors.As(err, &cycle) {
				t.Fatalf("%s\n%T is no CycleError", c.reason, err)
			}
			if diff := cmp.Diff(c.path, cycle.Path); diff != "" {
				t.Errorf("%s\npath (-want +got):\n%s", c.reason, diff)
			}
			if _, err := g.Tree(nil); err == nil {
				t.Errorf("%s\ntree found no cycle", c.reason)
			}
		})
	}
}

func TestAnEdgeToAnUnknownNodeIsRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		from, to string
		want     string
	}{
		"To":   {"a typo in dependsOn", "web", "bd", "web -> bd (web.cue:1): unknown node bd"},
		"From": {"an edge of nothing", "wbe", "web", "wbe -> web (web.cue:1): unknown node wbe"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := build(t, "web db")
			err := g.AddEdge(c.from, c.to, "web.cue:1")
			if err == nil || err.Error() != c.want {
				t.Errorf("%s\nwant %s\ngot  %v", c.reason, c.want, err)
			}
			if len(g.Edges()) != 0 {
				t.Errorf("%s\nthe refused edge was kept", c.reason)
			}
		})
	}
}

func TestNeighboursAreInAuthorOrder(t *testing.T) {
	t.Parallel()
	type near struct{ Dependencies, Dependents, AllDependencies []string }
	cases := map[string]struct {
		reason string
		node   string
		want   near
	}{
		"Top": {
			reason: "web needs all others",
			node:   "web",
			want: near{
				Dependencies:    []string{"config", "db", "cache"},
				AllDependencies: []string{"config", "db", "cache"},
			},
		},
		"Middle": {
			reason: "cache is between db and web",
			node:   "cache",
			want: near{
				Dependencies: []string{"db"}, Dependents: []string{"web"},
				AllDependencies: []string{"db"},
			},
		},
		"Bottom": {
			reason: "a node is not among its own dependents",
			node:   "db",
			want:   near{Dependents: []string{"web", "cache"}},
		},
		"Unknown": {reason: "an unknown node has no neighbours", node: "nope"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := webShop(t)
			got := near{g.Dependencies(c.node), g.Dependents(c.node), g.TransitiveDependencies(c.node)}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestNodesKeepTheirFirstPlace(t *testing.T) {
	t.Parallel()
	g := build(t, "b a b c a")
	if diff := cmp.Diff([]string{"b", "a", "c"}, g.Nodes()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if g.Len() != 3 || !g.Has("c") || g.Has("d") {
		t.Errorf("Len %d, Has(c) %v, Has(d) %v", g.Len(), g.Has("c"), g.Has("d"))
	}
}

func TestTheOrderOfAddingEdgesNeverShows(t *testing.T) {
	t.Parallel()
	acyclic := []string{
		"web>config@1", "web>db@2", "web>db@3", "web>cache@4", "cache>db@5", "ingress>web@6",
		"job>db@7", "metrics>web@8", "metrics>cache@9", "job>config@10",
	}
	cyclic := append([]string{"db>metrics@11", "config>ingress@12", "config>config@13"}, acyclic...)
	for name, edges := range map[string][]string{"Acyclic": acyclic, "Cyclic": cyclic} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewSource(1))
			want := ""
			for range 1000 {
				random.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
				got := everything(build(t, "ingress web metrics cache config db job", edges...))
				if want == "" {
					want = got
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("edges %v (-first +this):\n%s", edges, diff)
				}
			}
		})
	}
}
