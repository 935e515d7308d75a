package graph

import (
	"fmt"
	"strings"
)

// Mermaid returns the graph as a Mermaid flowchart, top to bottom in the order of a rollout: an
// arrow leads from a node to what needs it. Parallel edges become one arrow. It also draws a
// graph with cycles, because a picture explains them best. text is as for Tree.
func (g *Graph[N, E]) Mermaid(text func(N) []string) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, n := range g.nodes {
		lines := linesOf(n, text)
		for i, l := range lines {
			lines[i] = mermaidText.Replace(l)
		}
		// The identifier is a number: a name may hold any character, or be a keyword.
		fmt.Fprintf(&b, "  n%d[\"%s\"]\n", i, strings.Join(lines, "<br/>"))
	}
	for i := range g.nodes {
		last := -1
		for _, h := range g.in[i] {
			if h.node != last {
				fmt.Fprintf(&b, "  n%d --> n%d\n", i, h.node)
			}
			last = h.node
		}
	}
	return b.String()
}

// mermaidText escapes the characters that have a meaning in a quoted Mermaid label.
var mermaidText = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "&", "#amp;")
