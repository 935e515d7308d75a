package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/graph"
)

// everything is all answers of a graph as one text.
func everything(g *graph.Graph[string, string]) string {
	order, err := g.Order()
	tree, _ := g.Tree(nil)
	return fmt.Sprintln(order, err, g.Edges()) + tree + g.Mermaid(nil)
}

func TestDrawing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		graph   *graph.Graph[string, string]
		text    func(string) []string
		tree    string
		mermaid string
	}{
		"Empty": {
			reason:  "nothing to draw is no error",
			graph:   build(t, ""),
			mermaid: "flowchart TD\n",
		},
		"OneNode": {
			reason: "a graph without edges has no lines",
			graph:  build(t, "web"),
			tree:   "web\n",
			mermaid: `
flowchart TD
  n0["web"]
`,
		},
		"WebShop": {
			reason: "a node is below the dependency that comes last, and names those not above it",
			graph:  webShop(t),
			tree: `
config
db
└─ cache
   └─ web  (also after config)
`,
			mermaid: `
flowchart TD
  n0["web"]
  n1["config"]
  n2["db"]
  n3["cache"]
  n1 --> n0
  n2 --> n0
  n2 --> n3
  n3 --> n0
`,
		},
		"WithObjects": {
			reason: "lines stay within the branch of their node",
			graph:  build(t, "db web job ingress", "web>db", "job>db", "ingress>web"),
			text:   func(n string) []string { return []string{n + "  Ready", "Deployment/" + n, "Service/" + n} },
			tree: `
db  Ready
│ · Deployment/db
│ · Service/db
├─ web  Ready
│  │ · Deployment/web
│  │ · Service/web
│  └─ ingress  Ready
│       · Deployment/ingress
│       · Service/ingress
└─ job  Ready
     · Deployment/job
     · Service/job
`,
			mermaid: `
flowchart TD
  n0["db  Ready<br/>Deployment/db<br/>Service/db"]
  n1["web  Ready<br/>Deployment/web<br/>Service/web"]
  n2["job  Ready<br/>Deployment/job<br/>Service/job"]
  n3["ingress  Ready<br/>Deployment/ingress<br/>Service/ingress"]
  n0 --> n1
  n0 --> n2
  n1 --> n3
`,
		},
		"HostileText": {
			reason: "no text of a user breaks out of its place",
			graph:  build(t, "a b", "b>a"),
			text:   func(n string) []string { return []string{n + "\"] <b>#\r\nn9 & `x`"} },
			tree: `
a"] <b>#
│ · n9 & ` + "`x`" + `
└─ b"] <b>#
     · n9 & ` + "`x`" + `
`,
			mermaid: `
flowchart TD
  n0["a#quot;] #lt;b#gt;#35;<br/>n9 #amp; #96;x#96;"]
  n1["b#quot;] #lt;b#gt;#35;<br/>n9 #amp; #96;x#96;"]
  n0 --> n1
`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := c.graph.Tree(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(c.tree, "\n"), tree); diff != "" {
				t.Errorf("%s\ntree (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(strings.TrimPrefix(c.mermaid, "\n"), c.graph.Mermaid(c.text)); diff != "" {
				t.Errorf("%s\nmermaid (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestMermaidDrawsACycle(t *testing.T) {
	t.Parallel()
	got := build(t, "a b", "a>b", "b>a").Mermaid(nil)
	want := "flowchart TD\n  n0[\"a\"]\n  n1[\"b\"]\n  n0 --> n1\n  n1 --> n0\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
